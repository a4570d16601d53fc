package write_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
)

// things is a service's store with the idempotency table and a table of effects.
type things struct {
	*pgxpool.Pool
	store hubtest.WriteStoreDB
}

func newThings(t testing.TB) things {
	t.Helper()
	store := hubtest.WriteStore(t)
	if err := postgres.Migrate(t.Context(), store.OwnerURL, "authoring", fstest.MapFS{"00001_things.sql": {Data: []byte(`-- +goose Up
CREATE TABLE authoring.effects (name text NOT NULL);
GRANT USAGE ON SCHEMA authoring TO hub_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA authoring TO hub_service;`)}}); err != nil {
		t.Fatal(err)
	}
	if err := write.Migrate(t.Context(), store.OwnerURL, "authoring"); err != nil {
		t.Fatal(err)
	}
	if err := audit.Migrate(t.Context(), store.OwnerURL); err != nil {
		t.Fatal(err)
	}
	return things{open(t, postgres.Config{URL: store.URL("authoring")}), store}
}

func (s things) effects(t interface{ Fatal(...any) }) (n int) {
	if err := s.QueryRow(context.Background(), "SELECT count(*) FROM authoring.effects").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s things) keys(t interface{ Fatal(...any) }) (n int) {
	if err := s.QueryRow(context.Background(), "SELECT count(*) FROM authoring.idempotency_keys").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s things) once(ctx context.Context, key write.Key, effect write.Effect) (tool.Result, error) {
	return write.New(s.Pool, write.Options{Service: "authoring"}).Once(ctx, key, effect)
}

type fataler interface{ Fatal(...any) }

func key(t fataler, name, input string) write.Key {
	print, err := write.Fingerprint(context.Background(), []byte(input))
	if err != nil {
		t.Fatal(err)
	}
	return write.Key{Principal: "ak_1", Operation: "create_segment", Key: name, Fingerprint: print}
}

func entry() audit.Entry {
	return audit.Entry{At: time.Now(), Tool: "create_segment", Outcome: audit.OK}
}

// insert is an effect that leaves one row and answers its name.
func insert(name string) write.Effect {
	return func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
		_, err := tx.Exec(ctx, "INSERT INTO authoring.effects VALUES ($1)", name)
		return tool.Result{Head: tool.Head{Count: 3}, Data: []byte(`{"name": "` + name + `"}`)}, entry(), err
	}
}

func TestFiftyAtOnceAreOneEffect(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	var fresh atomic.Int64
	if err := together(50, func(int) error {
		answer, err := s.once(t.Context(), key(t, "k", `{}`), insert("a"))
		if err != nil {
			return err
		}
		if !answer.Replayed {
			fresh.Add(1)
		}
		if string(answer.Data) != `{"name": "a"}` || answer.Count != 3 {
			return fmt.Errorf("answer %s, count %d", answer.Data, answer.Count)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if n := s.effects(t); n != 1 || fresh.Load() != 1 {
		t.Errorf("%d effects, %d answers that were not replayed", n, fresh.Load())
	}
}

func TestKeyIsForOneInput(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	for _, input := range []string{`{"a":1,"b":[true,"x"]}`, "{ \"b\" :\n[true,\"\\u0078\"],\t\"a\": 1.0 }", `{"a":1e0,"b":[true,"x"]}`} {
		if _, err := s.once(t.Context(), key(t, "k", input), insert("a")); err != nil {
			t.Errorf("%s: %v", input, err)
		}
	}
	for _, input := range []string{`{"a":2,"b":[true,"x"]}`, `{"a":1,"b":["x",true]}`, `{"a":1,"b":[true,"X"]}`,
		`{"a":"1","b":[true,"x"]}`, `{"a":1}`, `{}`} {
		if _, err := s.once(t.Context(), key(t, "k", input), insert("b")); !fault.Is(err, fault.Idempotency) {
			t.Errorf("%s: %v", input, err)
		}
	}
	if n := s.effects(t); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestKeysOfOthersAreIndependent(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	k := key(t, "k", `{}`)
	other, operation, name := k, k, k
	other.Principal, operation.Operation, name.Key = "ak_2", "save_message_draft", "K"
	for i, k := range []write.Key{k, other, operation, name} {
		answer, err := s.once(t.Context(), k, insert(fmt.Sprint(i)))
		if err != nil || answer.Replayed {
			t.Errorf("%d: %+v, %v", i, answer, err)
		}
	}
	if n := s.effects(t); n != 4 {
		t.Errorf("%d effects", n)
	}
}

// hurried is the context of a caller who has 600 ms, of which Once waits for 100. It does not
// end by then: a busy machine may take longer to answer.
type hurried struct{ context.Context }

func (hurried) Deadline() (time.Time, bool) { return time.Now().Add(600 * time.Millisecond), true }

func TestWhoComesWhileItRunsIsTold(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	running, finish, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := s.once(t.Context(), key(t, "k", `{}`), func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
			answer, row, err := insert("a")(ctx, tx)
			close(running)
			<-finish
			return answer, row, err
		})
		done <- err
	}()
	<-running
	for name, k := range map[string]write.Key{"same input": key(t, "k", `{}`), "other input": key(t, "k", `{"a":1}`)} {
		_, err := s.once(hurried{t.Context()}, k, insert("b"))
		f := fault.From(err)
		details, _ := json.Marshal(f.Details)
		if f.Code != fault.Conflict || f.RetryAfter != time.Second || !f.Retryable() ||
			string(details) != `{"code":"REQUEST_IN_PROGRESS"}` {
			t.Errorf("%s: %+v, details %s", name, f, details)
		}
	}
	waits := make(chan tool.Result, 1)
	go func() {
		answer, err := s.once(t.Context(), key(t, "k", `{}`), insert("c"))
		if err != nil {
			t.Error(err)
		}
		waits <- answer
	}()
	close(finish)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if answer := <-waits; !answer.Replayed || string(answer.Data) != `{"name": "a"}` {
		t.Errorf("who waited got %+v", answer)
	}
	if n := s.effects(t); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestRefusalFreesTheKey(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	refused := fault.New(fault.NotFound, "no such segment").With(map[string]string{"segmentId": "x"})
	for name, fail := range map[string]write.Effect{
		"fault": func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
			answer, e, err := insert("half")(ctx, tx)
			return answer, e, errors.Join(err, refused)
		},
		"broken statement": func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
			if _, _, err := insert("half")(ctx, tx); err != nil {
				return tool.Result{}, audit.Entry{}, err
			}
			_, err := tx.Exec(ctx, "SELECT nonsense")
			return tool.Result{}, audit.Entry{}, err
		},
		"swallowed broken statement": func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
			_, _ = tx.Exec(ctx, "SELECT nonsense")
			return tool.Result{Data: []byte("{}")}, entry(), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.once(t.Context(), key(t, name, `{}`), fail)
			if err == nil || name == "fault" && fault.From(err) != refused {
				t.Errorf("got %v", err)
			}
			if n, k := s.effects(t), s.keys(t); n != 0 || k != 0 {
				t.Fatalf("%d effects and %d keys stayed", n, k)
			}
		})
		t.Run(name+", then it succeeds", func(t *testing.T) {
			answer, err := s.once(t.Context(), key(t, name, `{"other":"input"}`), insert("a"))
			if err != nil || answer.Replayed {
				t.Errorf("%+v, %v", answer, err)
			}
			if _, err := s.Exec(t.Context(), "DELETE FROM authoring.effects; DELETE FROM authoring.idempotency_keys"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWhoWaitedRunsWhenTheFirstIsRefused: the refusal of one caller is not the answer of another.
func TestWhoWaitedRunsWhenTheFirstIsRefused(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	var runs atomic.Int64
	answers := make([]tool.Result, 10)
	_ = together(10, func(i int) (err error) {
		answers[i], err = s.once(t.Context(), key(t, "k", `{}`), func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
			if _, err := tx.Exec(ctx, `SELECT 1`); err != nil { // which claims the key
				return tool.Result{}, audit.Entry{}, err
			}
			if runs.Add(1) <= 3 {
				return tool.Result{}, audit.Entry{}, fault.New(fault.Conflict, "not yet")
			}
			return insert("a")(ctx, tx)
		})
		return err
	})
	answered := 0
	for _, a := range answers {
		if a.Data != nil {
			answered++
		}
	}
	if n := s.effects(t); n != 1 || runs.Load() != 4 || answered != 7 {
		t.Errorf("%d effects, %d runs, %d answers", n, runs.Load(), answered)
	}
}

func TestNothingStaysOfAnEffectThatIsCutOff(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	super := open(t, postgres.Config{URL: s.store.SuperuserURL})
	cut := func(how func(ctx context.Context, tx pgx.Tx) error) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err = s.once(ctx, key(t, "k", `{}`), func(_ context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
			answer, e, err := insert("half")(ctx, tx)
			if err == nil {
				err = how(context.WithValue(ctx, cancelKey{}, cancel), tx)
			}
			return answer, e, err
		})
		return err
	}
	for name, c := range map[string]struct {
		how  func(context.Context, pgx.Tx) error
		code fault.Code
	}{
		"backend killed": {func(ctx context.Context, tx pgx.Tx) error {
			var pid int
			if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
				return err
			}
			_, err := super.Exec(ctx, "SELECT pg_terminate_backend($1, 5000)", pid)
			return err
		}, fault.DB},
		"caller gone": {func(ctx context.Context, tx pgx.Tx) error {
			ctx.Value(cancelKey{}).(context.CancelFunc)()
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		}, ""},
		"caller gone, effect unaware": {func(ctx context.Context, _ pgx.Tx) error {
			ctx.Value(cancelKey{}).(context.CancelFunc)()
			return nil
		}, ""},
		"panic": {func(context.Context, pgx.Tx) error { panic("defect") }, ""},
	} {
		if err := cut(c.how); err == nil || c.code != "" && !fault.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
		if n, k := s.effects(t), s.keys(t); n != 0 || k != 0 {
			t.Fatalf("%s: %d effects and %d keys stayed", name, n, k)
		}
	}
	if answer, err := s.once(t.Context(), key(t, "k", `{}`), insert("a")); err != nil || answer.Replayed || s.effects(t) != 1 {
		t.Errorf("afterwards: %+v, %v", answer, err)
	}
	hubtest.Eventually(t, "all connections are given back", func() bool { return s.Stat().AcquiredConns() == 0 })
}

type cancelKey struct{}

func TestOnceWithoutAStoreIsE_DB(t *testing.T) {
	t.Parallel()
	pool := open(t, postgres.Config{URL: "postgres://hub@127.0.0.1:1/hub?sslmode=disable"})
	if _, err := write.New(
		pool,
		write.Options{Service: "authoring"},
	).Once(
		t.Context(),
		key(t, "k", `{}`),
		insert("a"),
	); !fault.Is(
		err,
		fault.DB,
	) {
		t.Errorf("got %v", err)
	}
}

// TestFingerprintIsOfCanonicalJSON takes the example of RFC 8785, 3.2.
func TestFingerprintIsOfCanonicalJSON(t *testing.T) {
	t.Parallel()
	got, err := write.Fingerprint(t.Context(), []byte(`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false], "\ud83d\ude00": 1, "\ufb33": 2
}`))
	// Names are ordered by UTF-16: the smiley, d83d, comes before fb33.
	const canonical = `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
		`"string":"€$\u000f\nA'B\"\\\\\"/","😀":1,"` + "\ufb33" + `":2}`
	if err != nil || got != sha256.Sum256([]byte(canonical)) {
		t.Errorf("%x, %v", got, err)
	}
}

// TestOnceBehavesAsItsModel plays calls, refusals and reaping at random and compares each
// answer, and what the store holds, with a map.
func TestOnceBehavesAsItsModel(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := flag.Set("rapid.checks", "30"); err != nil { // each check is dozens of transactions
			t.Fatal(err)
		}
	}
	s := newThings(t)
	type stored struct{ input, answer string }
	rapid.Check(t, func(t *rapid.T) {
		if _, err := s.Exec(context.Background(), "DELETE FROM authoring.effects; DELETE FROM authoring.idempotency_keys"); err != nil {
			t.Fatal(err)
		}
		model, effects, calls := map[string]stored{}, 0, 0
		names := rapid.SampledFrom([]string{"a", "A", "b", strings.Repeat("k", 255)})
		inputs := rapid.SampledFrom([]string{`{"n":1}`, `{"n":2}`, `{"n":1.0}`})
		canonical := func(input string) string { return strings.ReplaceAll(input, ".0", "") }
		t.Repeat(map[string]func(*rapid.T){
			"call": func(t *rapid.T) {
				name, input, refuse := names.Draw(t, "key"), inputs.Draw(t, "input"), rapid.IntRange(0, 3).Draw(t, "refuse") == 0
				calls++
				said := fmt.Sprintf(`{"name": "%d"}`, calls)
				answer, err := s.once(
					context.Background(),
					key(t, name, input),
					func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
						answer, e, err := insert(fmt.Sprint(calls))(ctx, tx)
						if refuse && err == nil {
							err = fault.New(fault.Suppressed, "no")
						}
						return answer, e, err
					},
				)
				before, known := model[name]
				switch {
				case known && before.input != canonical(input):
					if !fault.Is(err, fault.Idempotency) {
						t.Fatalf("other input: %v", err)
					}
				case known:
					if err != nil || !answer.Replayed || string(answer.Data) != before.answer || answer.Count != 3 {
						t.Fatalf("replay: %+v, %v", answer, err)
					}
				case refuse:
					if !fault.Is(err, fault.Suppressed) {
						t.Fatalf("refusal: %v", err)
					}
				default:
					if err != nil || answer.Replayed || string(answer.Data) != said {
						t.Fatalf("first call: %+v, %v", answer, err)
					}
					model[name] = stored{canonical(input), said}
					effects++
				}
			},
			"reap": func(t *rapid.T) {
				name := names.Draw(t, "key")
				if _, err := s.Exec(context.Background(), "DELETE FROM authoring.idempotency_keys WHERE key = $1", name); err != nil {
					t.Fatal(err)
				}
				delete(model, name)
			},
			"": func(t *rapid.T) {
				if n, k := s.effects(t), s.keys(t); n != effects || k != len(model) {
					t.Fatalf("%d effects and %d keys, want %d and %d", n, k, effects, len(model))
				}
			},
		})
	})
}

func BenchmarkFingerprint(b *testing.B) {
	var body strings.Builder
	body.WriteString(`{"kind":"partner","name":"win back","targets":[`)
	for i := range 50_000 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(
			&body,
			`{"externalId":"%d","snapshot":{"brand_id":%d,"brand_name":"브랜드 %d","president":"Kim \"K\" `+
				`Minsu","category":{"id":%d,"name":"beauty"},"country_code":"KR","last_campaign_at":"2026-01-31T09:00:00","tags":["quiet",`+
				`"verified"],"ratio":0.%06d,"contact":null}}`,
			i,
			i*7,
			i,
			i%100,
			i,
		)
	}
	body.WriteString(`]}`)
	input := []byte(body.String())
	b.SetBytes(int64(len(input)))
	for b.Loop() {
		if _, err := write.Fingerprint(b.Context(), input); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOnce(b *testing.B) {
	s := newThings(b)
	var n atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.once(b.Context(), key(b, fmt.Sprint(n.Add(1)), `{}`), insert("a")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestOldKeysAreReaped(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	for i := range 3 {
		if _, err := s.once(t.Context(), key(t, fmt.Sprint(i), `{}`), insert("a")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Exec(
		t.Context(),
		`UPDATE authoring.idempotency_keys SET created_at = now() - interval '72 hours 1 minute' WHERE ctid IN (SELECT ctid
			FROM authoring.idempotency_keys LIMIT 1);
		INSERT INTO authoring.idempotency_keys SELECT 'c', 't', n::text, '\x00', 0, '', now() - interval '4 days' FROM generate_series(1,
			2500) n`,
	); err != nil {
		t.Fatal(err)
	}
	n, err := write.New(s.Pool, write.Options{Service: "authoring"}).Reap(t.Context())
	if left := s.keys(t); err != nil || n != 2501 || left != 2 {
		t.Errorf("%d reaped, %d left, %v", n, left, err)
	}
}

// TestReplicasReapTogether runs two reapers at once.
func TestReplicasReapTogether(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	if _, err := s.Exec(
		t.Context(),
		`INSERT INTO authoring.idempotency_keys SELECT 'c', 't', n::text, '\x00', 0, '', now() - interval '4 days' `+
			`FROM generate_series(1, 5000) n`,
	); err != nil {
		t.Fatal(err)
	}
	var reaped atomic.Int64
	if err := together(2, func(int) error {
		n, err := write.New(s.Pool, write.Options{Service: "authoring"}).Reap(t.Context())
		reaped.Add(n)
		return err
	}); err != nil || reaped.Load() != 5000 || s.keys(t) != 0 {
		t.Errorf("%d reaped, %d left, %v", reaped.Load(), s.keys(t), err)
	}
}

// TestScopeAndRetentionAreTheCallers: without an operation a key is one for the principal, the answer keeps its status,
// and its reuse is refused in the caller's own words.
func TestScopeAndRetentionAreTheCallers(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	mine := errors.New("mine")
	keys := write.New(s.Pool, write.Options{Service: "authoring", Kept: 30 * 24 * time.Hour, Reused: func() error { return mine }})
	k := write.Key{Principal: "app:shop", Key: "k", Fingerprint: [32]byte{1}}
	created := func(context.Context, pgx.Tx) (tool.Result, audit.Entry, error) {
		return tool.Result{Head: tool.Head{Status: 201, Count: 1}, Data: []byte("{}")}, entry(), nil
	}
	for _, replayed := range []bool{false, true} {
		if r, err := keys.Once(t.Context(), k, created); err != nil || r.Status != 201 || r.Replayed != replayed {
			t.Errorf("%+v, %v", r, err)
		}
	}
	other := k
	other.Fingerprint = [32]byte{2}
	if _, err := keys.Once(t.Context(), other, created); !errors.Is(err, mine) {
		t.Errorf("reused: %v", err)
	}
	if _, err := s.Exec(t.Context(), `UPDATE authoring.idempotency_keys SET created_at = now() - interval '29 days'`); err != nil {
		t.Fatal(err)
	}
	if n, err := keys.Reap(t.Context()); err != nil || n != 0 {
		t.Errorf("%d reaped, %v", n, err)
	}
}

// TestServicesOwnTableStays: the table that a service made by itself, with rows, gets what is new.
func TestServicesOwnTableStays(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t)
	if err := postgres.Migrate(t.Context(), store.OwnerURL, "authoring", fstest.MapFS{"00001_things.sql": {Data: []byte(`-- +goose Up
CREATE TABLE authoring.idempotency_keys (credential_id text NOT NULL, tool text NOT NULL, key text NOT NULL, fingerprint bytea NOT NULL,
	count integer NOT NULL DEFAULT 0,
  data bytea, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (credential_id, tool, key));
INSERT INTO authoring.idempotency_keys VALUES ('ak_1', 'create_segment', 'k', sha256('{}'), 3, '{}');`)}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := write.Migrate(t.Context(), store.OwnerURL, "authoring"); err != nil {
			t.Fatal(err)
		}
	}
	pool := open(t, postgres.Config{URL: store.URL("authoring")})
	if r, found, err := write.New(
		pool,
		write.Options{Service: "authoring"},
	).Stored(
		t.Context(),
		key(t, "k", `{}`),
	); err != nil || !found || r.Status != 200 ||
		r.Count != 3 {
		t.Errorf("%+v, %v, %v", r, found, err)
	}
}
