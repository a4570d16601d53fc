package write_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
)

// keysOf are those of a process that calls a second system; each has its own pool.
func (s things) keysOf(t testing.TB) *write.Keys {
	t.Helper()
	return write.New(open(t, postgres.Config{URL: s.store.URL("authoring")}), write.Options{Service: "authoring", Reused: reused})
}

// order persists what a claim is about.
func order(name string) write.Persist {
	return func(ctx context.Context, tx *postgres.Tx) (string, error) {
		_, err := tx.Exec(ctx, "INSERT INTO authoring.effects VALUES ($1)", name)
		return name, err
	}
}

var created = tool.Result{Head: tool.Head{Status: 201, Count: 2}, Data: []byte(`{"order" : "1"}`)}

func (s things) finish(ctx context.Context, keys *write.Keys, claim write.Claim, answer tool.Result) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO authoring.effects VALUES ('finished')"); err != nil {
			return err
		}
		return keys.Finish(ctx, tx, claim, answer)
	})
}

// over ends the leases of a key, as time does.
func (s things) over(t fataler) {
	if _, err := s.Exec(
		context.Background(),
		"UPDATE authoring.idempotency_keys SET lease_until = lease_until - interval '1 hour'",
	); err != nil {
		t.Fatal(err)
	}
}

func (s things) begin(t testing.TB, keys *write.Keys, k write.Key) write.Claim {
	t.Helper()
	claim, err := keys.Begin(t.Context(), k, time.Minute, order("a"))
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// reused is what the service of these tests answers where a key was used before for another call.
func reused() error {
	return fault.New(fault.Conflict, "used before").With(map[string]string{"code": "IDEMPOTENCY_KEY_CONFLICT"})
}

func isConflict(err error, code string) bool {
	f := fault.From(err)
	if f == nil {
		return false
	}
	details, _ := json.Marshal(f.Details)
	return f.Code == fault.Conflict && string(details) == `{"code":"`+code+`"}` && f.Retryable() == (code == "REQUEST_IN_PROGRESS")
}

// TestTwoProcessesCallTheSecondSystemOnce: SPEC.md 12, row 23.
func TestTwoProcessesCallTheSecondSystemOnce(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	processes := []*write.Keys{s.keysOf(t), s.keysOf(t)}
	var called, replayed atomic.Int64
	if err := together(20, func(i int) error {
		keys := processes[i%2]
		claim, err := keys.Begin(t.Context(), key(t, "k", `{}`), time.Minute, order("a"))
		if err != nil {
			return err
		}
		if !claim.Done {
			called.Add(1)
			if claim.Resource != "a" || claim.Resumed {
				return fmt.Errorf("claim %+v", claim)
			}
			return s.finish(t.Context(), keys, claim, created)
		}
		replayed.Add(1)
		if a := claim.Answer; !a.Replayed || string(a.Data) != string(created.Data) || a.Status != 201 || a.Count != 2 ||
			claim.Resource != "a" {
			return fmt.Errorf("replay %+v", claim)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if n := s.effects(t); called.Load() != 1 || replayed.Load() != 19 || n != 2 {
		t.Errorf("%d calls, %d replays, %d effects", called.Load(), replayed.Load(), n)
	}
}

func TestAClaimThatWasLeftIsResumedByOne(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	processes := []*write.Keys{s.keysOf(t), s.keysOf(t)}
	k := key(t, "k", `{}`)
	crashed := s.begin(t, processes[0], k)
	if _, err := processes[1].Begin(hurried{t.Context()}, k, time.Minute, order("b")); !isConflict(err, "REQUEST_IN_PROGRESS") {
		t.Errorf("while the lease runs: %v", err)
	}
	s.over(t)
	var resumed atomic.Int64
	if err := together(10, func(i int) error {
		keys := processes[i%2]
		claim, err := keys.Begin(t.Context(), k, time.Minute, order("b"))
		if err != nil || claim.Done {
			return err
		}
		resumed.Add(1)
		if !claim.Resumed || claim.Resource != "a" {
			return fmt.Errorf("claim %+v", claim)
		}
		if err := s.finish(t.Context(), processes[0], crashed, created); !errors.Is(err, write.ErrTakenOver) {
			return fmt.Errorf("the one that came back finished: %w", err)
		}
		if err := processes[0].Release(t.Context(), s.Pool, crashed); !errors.Is(err, write.ErrTakenOver) {
			return fmt.Errorf("the one that came back released: %w", err)
		}
		return s.finish(t.Context(), keys, claim, created)
	}); err != nil {
		t.Error(err)
	}
	if n := s.effects(t); resumed.Load() != 1 || n != 2 { // the order, and one that finished
		t.Errorf("%d resumed, %d effects", resumed.Load(), n)
	}
}

func TestARefusalReleasesTheKey(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	keys := s.keysOf(t)
	for _, refused := range []error{fault.New(fault.NotFound, "no such order"), pgx.ErrNoRows} {
		if _, err := keys.Begin(t.Context(), key(t, "k", `{}`), time.Minute, func(ctx context.Context, tx *postgres.Tx) (string, error) {
			_, err := order("half")(ctx, tx)
			return "half", errors.Join(err, refused)
		}); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
	}
	if n, k := s.effects(t), s.keys(t); n != 0 || k != 0 {
		t.Fatalf("%d effects and %d keys stayed", n, k)
	}
	for i := range 3 { // the second system refuses, and a waiting call begins anew
		claim := s.begin(t, keys, key(t, "k", fmt.Sprintf(`{"try":%d}`, i)))
		if claim.Done || claim.Resumed {
			t.Fatalf("claim %+v", claim)
		}
		next := make(chan write.Claim, 1)
		go func() {
			c, err := keys.Begin(t.Context(), claim.Key, time.Minute, order("b"))
			if err != nil {
				t.Error(err)
			}
			next <- c
		}()
		if err := keys.Release(t.Context(), s.Pool, claim); err != nil {
			t.Error(err)
		}
		c := <-next
		if c.Done || c.Resumed {
			t.Errorf("who waited: %+v", c)
		}
		if err := keys.Release(t.Context(), s.Pool, c); err != nil {
			t.Error(err)
		}
	}
	if k := s.keys(t); k != 0 {
		t.Errorf("%d keys stayed", k)
	}
}

func TestAKeyStandsForOneCallWhileItRunsAndAfter(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	keys := s.keysOf(t)
	claim := s.begin(t, keys, key(t, "k", `{}`))
	other := func(when string) {
		t.Helper()
		if _, err := keys.Begin(
			t.Context(),
			key(t, "k", `{"amount":1}`),
			time.Minute,
			order("b"),
		); !isConflict(
			err,
			"IDEMPOTENCY_KEY_CONFLICT",
		) {
			t.Errorf("%s: %v", when, err)
		}
		if _, _, err := keys.Stored(t.Context(), key(t, "k", `{"amount":1}`)); !isConflict(err, "IDEMPOTENCY_KEY_CONFLICT") {
			t.Errorf("%s, stored: %v", when, err)
		}
	}
	other("running")
	if _, found, err := keys.Stored(t.Context(), claim.Key); found || err != nil {
		t.Errorf("a claim has an answer: %v, %v", found, err)
	}
	if _, err := keys.Once(t.Context(), claim.Key, insert("c")); !isConflict(err, "REQUEST_IN_PROGRESS") {
		t.Errorf("Once beside a claim: %v", err)
	}
	s.over(t)
	other("left")
	if err := s.finish(t.Context(), keys, claim, created); err != nil { // nobody has taken it over
		t.Error(err)
	}
	other("done")
	if again, err := keys.Once(
		t.Context(),
		claim.Key,
		insert("c"),
	); err != nil || !again.Replayed ||
		string(again.Data) != string(created.Data) {
		t.Errorf("Once after a claim: %+v, %v", again, err)
	}
	if err := s.finish(t.Context(), keys, claim, created); !errors.Is(err, write.ErrTakenOver) {
		t.Errorf("finished twice: %v", err)
	}
	if n := s.effects(t); n != 2 {
		t.Errorf("%d effects", n)
	}
}

func TestWithoutAKeyNothingIsKept(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	keys := s.keysOf(t)
	for range 2 {
		claim := s.begin(t, keys, write.Key{Principal: "app:shop"})
		if claim.Done || claim.Resumed || claim.Resource != "a" {
			t.Errorf("claim %+v", claim)
		}
		if err := errors.Join(s.finish(t.Context(), keys, claim, created), keys.Release(t.Context(), s.Pool, claim)); err != nil {
			t.Error(err)
		}
	}
	if n, k := s.effects(t), s.keys(t); n != 4 || k != 0 {
		t.Errorf("%d effects, %d keys", n, k)
	}
}

func TestWhatIsLeftIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	keys := s.keysOf(t)
	for i := range 3 {
		s.begin(t, keys, key(t, fmt.Sprint(i), `{}`))
	}
	if left, err := keys.ExpiredClaims(t.Context(), 10); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	s.over(t)
	running := s.begin(t, keys, key(t, "running", `{}`))
	readings, err := keys.Sample(slog.New(slog.DiscardHandler)).Ask(t.Context())
	if err != nil || len(readings) != 3 || readings[0].Value != 4 || readings[1].Value != 3 || readings[2].Value <= 0 {
		t.Errorf("of four, three of them left, the gauges show %v, %v", readings, err)
	}
	left, err := keys.ExpiredClaims(t.Context(), 2)
	if err != nil || len(left) != 2 || left[0].Key != key(t, "0", `{}`) || left[0].Resource != "a" {
		t.Fatalf("%+v, %v", left, err)
	}
	if err := keys.Release(t.Context(), s.Pool, left[0]); !errors.Is(err, write.ErrTakenOver) {
		t.Errorf("released without being taken: %v", err)
	}
	var taken atomic.Int64
	if err := together(8, func(int) error {
		claim, ok, err := keys.TakeOver(t.Context(), left[0], time.Minute)
		if ok {
			taken.Add(1)
			return s.finish(t.Context(), keys, claim, created)
		}
		return err
	}); err != nil || taken.Load() != 1 {
		t.Errorf("%d have it, %v", taken.Load(), err)
	}
	if _, ok, err := keys.TakeOver(t.Context(), running, time.Minute); ok || err != nil {
		t.Errorf("a running one was taken: %v", err)
	}
	if _, err := s.Exec(t.Context(), `UPDATE authoring.idempotency_keys SET created_at = now() - interval '4 days'`); err != nil {
		t.Fatal(err)
	}
	if n, err := keys.Reap(t.Context()); err != nil || n != 1 || s.keys(t) != 3 {
		t.Errorf("%d reaped, %d stay, %v", n, s.keys(t), err)
	}
}

// TestAnOldProcessBesideIsDone: one that knows of no claims stores its answers, and finds those of a claim.
func TestAnOldProcessBesideIsDone(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	keys := s.keysOf(t)
	if _, err := s.Exec(t.Context(), `INSERT INTO authoring.idempotency_keys (credential_id, tool, key, fingerprint, data, count, status)
		VALUES ('ak_1', 'create_segment', 'k', sha256('{}'), '{}', 3, 200)`); err != nil {
		t.Fatal(err)
	}
	if claim := s.begin(t, keys, key(t, "k", `{}`)); !claim.Done || claim.Answer.Count != 3 || s.effects(t) != 0 {
		t.Errorf("%+v", claim)
	}
}

func TestClaimWithoutAStoreIsE_DB(t *testing.T) {
	t.Parallel()
	keys := write.New(open(t, postgres.Config{URL: "postgres://hub@127.0.0.1:1/hub?sslmode=disable"}), write.Options{Service: "authoring"})
	if _, err := keys.Begin(t.Context(), key(t, "k", `{}`), time.Minute, order("a")); !fault.Is(err, fault.DB) {
		t.Errorf("got %v", err)
	}
}

// TestTheKeyOfARouteStandsForTheWholeCall: SPEC.md 12, rows 24 and 25.
func TestTheKeyOfARouteStandsForTheWholeCall(t *testing.T) {
	t.Parallel()
	type input struct {
		Code   string `json:"code"`
		Amount *int64 `json:"amount"`
	}
	call := func(sub, method, path, body string) write.Call {
		t.Helper()
		var made write.Call
		route := tool.NewRoute(
			tool.RouteDeclaration{Declaration: tool.Declaration{
				Name:        "pay.x",
				Description: "x",
				Scope:       "pay:write",
				MaxBody:     1000,
				Input: schema.Object(
					schema.Required("code", schema.String("Code.")),
					schema.Optional("amount", schema.Integer("Won.", schema.Default(5))),
				),
			},
				Method: "POST", Path: "/v1/pay", Idempotency: tool.KeyOptional, Credential: tool.AppCredential},
			func(ctx context.Context, in input) (_ struct{}, err error) {
				made, err = write.NewRouteCall(ctx, "pay.x", method, path, in, time.Now())
				return struct{}{}, err
			},
		)
		ctx := caller.With(t.Context(), caller.Caller{Kind: caller.App, CredentialID: "app:shop", ExternalUserID: sub})
		if _, err := route.Tool.Endpoint(ctx, &tool.Call{Input: []byte(body), IdempotencyKey: "k"}); err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := call("u-1", "POST", "/v1/pay/orders", `{"code":"1","amount":5}`)
	if k := first.Key; k.Principal != "app:shop" || k.Operation != "" || k.Key != "k" || first.Entry(1, nil).Tool != "pay.x" {
		t.Errorf("%+v", first)
	}
	if same := call("u-1", "POST", "/v1/pay/orders", ` {"amount":5.0, "code":"1"} `); same.Key != first.Key {
		t.Error("another spelling is another call")
	}
	if same := call("u-1", "POST", "/v1/pay/orders", `{"code":"1"}`); same.Key != first.Key {
		t.Error("a default is not what it stands for")
	}
	for name, other := range map[string]write.Call{
		"amount": call("u-1", "POST", "/v1/pay/orders", `{"code":"1","amount":6}`),
		"user":   call("u-2", "POST", "/v1/pay/orders", `{"code":"1","amount":5}`),
		"route":  call("u-1", "POST", "/v1/pay/orders/{code}/refund", `{"code":"1","amount":5}`),
		"method": call("u-1", "PUT", "/v1/pay/orders", `{"code":"1","amount":5}`),
		"path":   call("u-1", "POST", "/v1/pay/orders", `{"code":"2","amount":5}`),
	} {
		if other.Key == first.Key || !other.Key.Same(first.Key) {
			t.Errorf("another %s: %+v", name, other.Key)
		}
	}
}

// TestClaimsBehaveAsTheirModel plays two processes that claim, crash, come back, finish and release, and time that ends
// leases, and compares each answer with a map.
func TestClaimsBehaveAsTheirModel(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := flag.Set("rapid.checks", "30"); err != nil { // each check is dozens of transactions
			t.Fatal(err)
		}
	}
	s := newThings(t)
	keys := s.keysOf(t)
	type state struct {
		input, resource, answer string
		holder                  int // the claim that has the lease
		over                    bool
	}
	rapid.Check(t, func(t *rapid.T) {
		if _, err := s.Exec(context.Background(), "DELETE FROM authoring.idempotency_keys"); err != nil {
			t.Fatal(err)
		}
		model, claims := map[string]*state{}, []write.Claim{}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				name, input := rapid.SampledFrom(
					[]string{"a", "b"},
				).Draw(
					t,
					"key",
				), rapid.SampledFrom(
					[]string{`{"n":1}`, `{"n":2}`},
				).Draw(
					t,
					"input",
				)
				resource := fmt.Sprint("po_", len(claims))
				claim, err := keys.Begin(impatient{context.Background()}, key(t, name, input), time.Minute, order(resource))
				m := model[name]
				switch {
				case m == nil:
					if err != nil || claim.Done || claim.Resumed || claim.Resource != resource {
						t.Fatalf("first: %+v, %v", claim, err)
					}
					model[name] = &state{input: input, resource: resource, holder: len(claims)}
					claims = append(claims, claim)
				case m.input != input:
					if !isConflict(err, "IDEMPOTENCY_KEY_CONFLICT") {
						t.Fatalf("other input: %v", err)
					}
				case m.answer != "":
					if err != nil || !claim.Done || string(claim.Answer.Data) != m.answer || claim.Resource != m.resource {
						t.Fatalf("done: %+v, %v", claim, err)
					}
				case m.over:
					if err != nil || claim.Done || !claim.Resumed || claim.Resource != m.resource {
						t.Fatalf("left: %+v, %v", claim, err)
					}
					m.holder, m.over = len(claims), false
					claims = append(claims, claim)
				default:
					if !isConflict(err, "REQUEST_IN_PROGRESS") {
						t.Fatalf("running: %+v, %v", claim, err)
					}
				}
			},
			"end": func(t *rapid.T) {
				if len(claims) == 0 {
					t.Skip("nothing claimed")
				}
				i, release := rapid.IntRange(0, len(claims)-1).Draw(t, "claim"), rapid.Bool().Draw(t, "release")
				claim, m := claims[i], model[claims[i].Key.Key]
				answer := fmt.Sprintf(`{"by" : %d}`, i)
				var err error
				if release {
					err = keys.Release(context.Background(), s.Pool, claim)
				} else {
					err = s.finish(context.Background(), keys, claim, tool.Result{Data: []byte(answer)})
				}
				switch {
				case m == nil || m.answer != "" || m.holder != i:
					if !errors.Is(err, write.ErrTakenOver) {
						t.Fatalf("not its own: %v", err)
					}
				case err != nil:
					t.Fatal(err)
				case release:
					delete(model, claim.Key.Key)
				default:
					m.answer = answer
				}
			},
			"time": func(t *rapid.T) {
				s.over(t)
				for _, m := range model {
					m.over = true
				}
			},
			"": func(t *rapid.T) {
				left := 0
				for _, m := range model {
					if m.over && m.answer == "" {
						left++
					}
				}
				if found, err := keys.ExpiredClaims(context.Background(), 10); err != nil || len(found) != left || s.keys(t) != len(model) {
					t.Fatalf("%d left, want %d; %d keys, want %d: %v", len(found), left, s.keys(t), len(model), err)
				}
			},
		})
	})
}

// impatient is the context of a caller who waits for nobody.
type impatient struct{ context.Context }

func (impatient) Deadline() (time.Time, bool) { return time.Now(), true }
