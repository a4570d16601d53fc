package credentials_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments/credentials"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for clientID, want := range map[string]string{"": "****", "x": "****", "12345678": "****78", "12345678901": "****01",
		"123456789012":                        "1234****9012",
		"S2_af4543a0be4d49a98122e01ec2059a56": "S2_a****9a56"} {
		if got := credentials.Mask(clientID); got != want {
			t.Errorf("%q: %q", clientID, got)
		}
	}
}

func TestWishesAreJudgedAsAWhole(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	good := values("x")
	for name, c := range map[string]struct {
		provider string
		env      credentials.Env
		values   credentials.Values
		paths    string
	}{
		"provider": {"stripe", credentials.Sandbox, good, "/provider"},
		"env":      {credentials.NicePay, "live", good, "/env"},
		"short": {credentials.NicePay, credentials.Sandbox, credentials.Values{ClientID: "1234567", Secret: "7654321"},
			"/client_id /secret"},
		"long": {credentials.NicePay, credentials.Sandbox, credentials.Values{ClientID: strings.Repeat("x", 201), Secret: good.Secret},
			"/client_id"},
		"spaces": {credentials.NicePay, credentials.Sandbox,
			credentials.Values{ClientID: good.ClientID + "\n", Secret: " " + good.Secret}, "/client_id /secret"},
		"no ASCII": {credentials.NicePay, credentials.Sandbox, credentials.Values{ClientID: good.ClientID, Secret: "canary-비밀-secret"},
			"/secret"},
		"everything": {"", "", credentials.Values{}, "/client_id /env /provider /secret"},
	} {
		_, err := s.Add(s.ctx, c.provider, c.env, c.values)
		var paths []string
		for _, v := range schema.ViolationsOf(err) {
			paths = append(paths, v.Path)
		}
		slices.Sort(paths)
		if got := strings.Join(
			paths,
			" ",
		); got != c.paths || !fault.Is(err, fault.Validation) ||
			strings.Contains(fmt.Sprintf("%+v", fault.From(err)), "canary") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if list, err := s.List(s.ctx, credentials.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestACredentialsLife(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	if _, err := s.Active(s.ctx, credentials.NicePay, credentials.Sandbox); !fault.Is(err, fault.DB) {
		t.Errorf("none: %v", err)
	}
	first := s.add(t, credentials.Sandbox, values("1"))
	production := s.add(t, credentials.Production, values("p"))
	if _, err := s.Add(s.ctx, credentials.NicePay, credentials.Sandbox, values("2")); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second active one: %v", err)
	}
	s.clock.Advance(time.Hour)
	second, err := s.Rotate(s.ctx, first.ID, values("2"))
	if err != nil || !second.Active || second.Env != credentials.Sandbox || second.CreatedBy != "ada@example.com" {
		t.Fatalf("%+v, %v", second, err)
	}
	is := func(want string) func(credentials.Unsealed, error) {
		return func(c credentials.Unsealed, err error) {
			t.Helper()
			clientID, secret := c.Reveal()
			if v := values(want); err != nil || clientID != v.ClientID || secret != v.Secret {
				t.Errorf("%v %v, want %s", c, err, want)
			}
		}
	}
	is("2")(s.Active(s.ctx, credentials.NicePay, credentials.Sandbox))
	is("p")(s.Active(s.ctx, credentials.NicePay, credentials.Production))
	is("1")(s.ByID(s.ctx, first.ID)) // orders keep theirs
	if c, err := s.ByID(s.ctx, first.ID); err != nil || c.ID != first.ID || c.Env != credentials.Sandbox {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := s.ByID(s.ctx, 999); !fault.Is(err, fault.NotFound) {
		t.Errorf("none: %v", err)
	}
	if _, err := s.Rotate(s.ctx, first.ID, values("3")); !fault.Is(err, fault.Conflict) {
		t.Errorf("rotated twice: %v", err)
	}
	if _, err := s.Activate(s.ctx, first.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("two active ones: %v", err)
	}
	verifying := func(want ...credentials.ID) {
		t.Helper()
		list, err := s.Verifying(s.ctx, credentials.NicePay)
		var ids []credentials.ID
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%v verify, want %v: %v", ids, want, err)
		}
	}
	verifying(second.ID, production.ID, first.ID)
	s.clock.Advance(30 * 24 * time.Hour)
	verifying(second.ID, production.ID, first.ID)
	s.clock.Advance(time.Millisecond)
	verifying(second.ID, production.ID)

	for typed, want := range map[string]fault.Code{"": fault.Validation, "sandbox": fault.Validation, "nicepay production": fault.Validation} {
		if _, err := s.Deactivate(s.ctx, second.ID, typed); !fault.Is(err, want) {
			t.Errorf("typed %q: %v", typed, err)
		}
	}
	s.clock.Advance(-30 * 24 * time.Hour) // the audit log is dated by the store's clock
	if c, err := s.Deactivate(s.ctx, second.ID, "nicepay sandbox"); err != nil || c.Active {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := s.Active(s.ctx, credentials.NicePay, credentials.Sandbox); !fault.Is(err, fault.DB) {
		t.Errorf("none is active: %v", err)
	}
	if _, err := s.Deactivate(s.ctx, second.ID, "nicepay sandbox"); !fault.Is(err, fault.Conflict) {
		t.Errorf("again: %v", err)
	}
	if c, err := s.Activate(s.ctx, first.ID); err != nil || !c.Active {
		t.Errorf("%+v, %v", c, err)
	}
	is("1")(s.Active(s.ctx, credentials.NicePay, credentials.Sandbox))

	var log string
	if err := s.owner.QueryRow(
		t.Context(),
		`SELECT string_agg(tool || ' ' || (detail->>'credential') || ' ' || external_user_id, ', ' ORDER BY tool, detail->>'credential') `+
			`FROM audit.calls`,
	).Scan(
		&log,
	); err != nil ||
		log != "credential.activate 1 ada@example.com, credential.add 1 ada@example.com, credential.add 2 ada@example.com, "+
			"credential.deactivate 4 ada@example.com, credential.rotate 4 ada@example.com" {
		t.Errorf("%s, %v", log, err)
	}
}

// TestSealsAreBoundToTheirRows moves what is sealed, as whoever can write to the store might: SPEC.md 12, row 36.
func TestSealsAreBoundToTheirRows(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	sandbox, production := s.add(t, credentials.Sandbox, values("s")), s.add(t, credentials.Production, values("p"))
	closed := func(what string, id credentials.ID) {
		t.Helper()
		if c, err := s.ByID(s.ctx, id); err == nil || fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v opens", what, c)
		}
	}
	swap := func(column string) {
		s.exec(t, `UPDATE payments.credentials a SET `+column+` = b.`+column+` FROM payments.credentials b WHERE a.id <> b.id`)
	}
	for _, column := range []string{"secret_ct", "client_id_ct"} {
		swap(column)
		closed(column+" of production", sandbox.ID)
		closed(column+" of sandbox", production.ID)
		if _, err := s.Active(s.ctx, credentials.NicePay, credentials.Production); err == nil {
			t.Error("the active one opens")
		}
		if _, _, err := s.Rekey(s.ctx); err == nil {
			t.Error("what does not open was sealed again")
		}
		swap(column)
	}
	s.exec(t, `UPDATE payments.credentials SET client_id_ct = secret_ct WHERE id = $1`, int64(sandbox.ID))
	closed("another column", sandbox.ID)
	s.exec(t, `UPDATE payments.credentials SET active = false`)
	s.exec(t, `UPDATE payments.credentials SET env = 'sandbox' WHERE id = $1`, int64(production.ID))
	closed("another environment", production.ID)
}

func TestRekeying(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	first := s.add(t, credentials.Sandbox, values("1"))
	if _, err := s.Rotate(s.ctx, first.ID, values("2")); err != nil {
		t.Fatal(err)
	}
	before, err := s.List(s.ctx, credentials.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	added, err := seal.Added(s.keyset)
	if err != nil {
		t.Fatal(err)
	}
	promoted, err := seal.Promoted(added)
	if err != nil {
		t.Fatal(err)
	}
	next := s.with(t, promoted)
	s.clock.Advance(time.Minute)
	if n, left, err := next.Rekey(s.ctx); err != nil || n != 2 || left != 0 {
		t.Fatalf("%d, %d, %v", n, left, err)
	}
	if c, err := next.ByID(s.ctx, first.ID); err != nil {
		t.Errorf("%v %v", c, err)
	}
	if after, err := next.List(s.ctx, credentials.Filter{}); err != nil || !slices.Equal(after, before) {
		t.Errorf("%+v, %v", after, err)
	}
	if _, err := s.ByID(s.ctx, first.ID); err == nil {
		t.Error("the old key opens what was sealed again")
	}
}

// TestACredentialThatDoesNotOpenCostsNothingElse: one that was sealed with another keyset, active or retired, verifies no webhook and is
// logged, while all others do, until none opens; the doctor counts it, and as an inactive one it is left out when all are sealed again.
func TestACredentialThatDoesNotOpenCostsNothingElse(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	other, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	closed, err := s.with(t, other).Add(s.ctx, credentials.NicePay, credentials.Sandbox, values("closed"))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.Verifying(s.ctx, credentials.NicePay); err == nil {
		t.Errorf("none opens, and %v verify", found)
	}
	production := s.add(t, credentials.Production, values("p"))
	if _, _, err := s.Rekey(s.ctx); err == nil {
		t.Error("an active one that does not open was left out")
	}
	verifying := func(want ...credentials.ID) {
		t.Helper()
		found, err := s.Verifying(s.ctx, credentials.NicePay)
		ids := make([]credentials.ID, len(found))
		for i, c := range found {
			ids[i] = c.ID
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%v, want %v: %v", ids, want, err)
		}
	}
	verifying(production.ID)
	if _, err := s.Active(s.ctx, credentials.NicePay, credentials.Sandbox); err == nil {
		t.Error("what does not open makes orders")
	}
	next, err := s.Rotate(s.ctx, closed.ID, values("s"))
	if err != nil {
		t.Fatal(err)
	}
	verifying(next.ID, production.ID)
	if said := s.logs.String(); !strings.Contains(said, "a credential does not open") ||
		!strings.Contains(said, "credential="+closed.ID.String()) {
		t.Errorf("logged: %s", said)
	}
	if n, active, err := s.Unopenable(s.ctx); n != 0 || active != 2 || err != nil {
		t.Errorf("%d of %d active ones do not open: %v", n, active, err)
	}
	if err := s.CheckVerifying(s.ctx); err == nil || !strings.Contains(err.Error(), "does not open 1 of the 3 credentials that verify") {
		t.Errorf("the doctor: %v", err)
	}
	if n, left, err := s.Rekey(s.ctx); err != nil || n != 2 || left != 1 {
		t.Errorf("%d are sealed again, %d are left: %v", n, left, err)
	}
	verifying(next.ID, production.ID)
	if _, err := s.with(t, other).ByID(s.ctx, closed.ID); err != nil {
		t.Errorf("what was left out is not as it was: %v", err)
	}
	s.clock.Advance(30*24*time.Hour + time.Millisecond)
	if err := s.CheckVerifying(s.ctx); err != nil {
		t.Errorf("it verifies no more: %v", err)
	}
}

func TestWithoutAKeysetNothingIsAdded(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	c := s.add(t, credentials.Sandbox, values("1"))
	bare := credentials.New(credentials.Config{Store: s.store, Now: s.clock.Now})
	_, add := bare.Add(s.ctx, credentials.NicePay, credentials.Production, values("2"))
	_, rotate := bare.Rotate(s.ctx, c.ID, values("2"))
	_, open := bare.ByID(s.ctx, c.ID)
	_, _, rekey := bare.Rekey(s.ctx)
	for what, err := range map[string]error{"add": add, "rotate": rotate, "open": open, "rekey": rekey} {
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "HUB_SECRETS_KEYSET") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := bare.List(s.ctx, credentials.Filter{}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestOneIsActiveAtMost lets many add, rotate and activate at once.
func TestOneIsActiveAtMost(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	race := func(n int, f func(i int) error) (done int64) {
		t.Helper()
		var ok atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range n {
			wg.Go(func() {
				<-start
				switch err := f(i); {
				case err == nil:
					ok.Add(1)
				case !fault.Is(err, fault.Conflict):
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		return ok.Load()
	}
	if n := race(20, func(i int) error {
		_, err := s.Add(s.ctx, credentials.NicePay, credentials.Sandbox, values(fmt.Sprint(i)))
		return err
	}); n != 1 {
		t.Errorf("%d were added", n)
	}
	list, err := s.List(s.ctx, credentials.Filter{ActiveOnly: true})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if n := race(20, func(i int) error {
		_, err := s.Rotate(s.ctx, list[0].ID, values(fmt.Sprint("r", i)))
		return err
	}); n != 1 {
		t.Errorf("%d rotations of one", n)
	}
	if list, err = s.List(s.ctx, credentials.Filter{ActiveOnly: true}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestRotationUnderLoad: orders are made and looked at all the time, and find a credential that opens.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	current := s.add(t, credentials.Sandbox, values("0"))
	first := current
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var read atomic.Int64
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, active := s.Active(s.ctx, credentials.NicePay, credentials.Sandbox)
				_, own := s.ByID(s.ctx, first.ID)
				verifying, third := s.Verifying(s.ctx, credentials.NicePay)
				if err := errors.Join(active, own, third); err != nil || len(verifying) == 0 {
					t.Error(err, len(verifying))
					return
				}
				read.Add(1)
			}
		})
	}
	for i := range 12 {
		next, err := s.Rotate(s.ctx, current.ID, values(fmt.Sprint(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 4 {
			if _, _, err := s.Rekey(s.ctx); err != nil {
				t.Error(err)
			}
		}
		current = next
	}
	close(stop)
	wg.Wait()
	if read.Load() == 0 {
		t.Error("nobody read")
	}
}

// TestNothingShowsWhatTheProviderGave looks for the values in every answer, in the audit log, in the rows and in what is logged.
func TestNothingShowsWhatTheProviderGave(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	v := credentials.Values{ClientID: canaryID, Secret: canarySecret}
	var said strings.Builder
	logger := slog.New(slog.NewJSONHandler(&said, nil))
	tell := func(what string, x any, err error) {
		fmt.Fprintf(&said, "%s %v %+v %#v %s\n", what, x, x, x, fmt.Sprint(err))
		b, _ := json.Marshal(x)
		said.Write(b)
		logger.Error(what, "x", x, "error", err)
	}
	c, err := s.Add(s.ctx, credentials.NicePay, credentials.Sandbox, v)
	tell("add", c, err)
	_, err = s.Add(s.ctx, credentials.NicePay, credentials.Sandbox, v)
	tell("again", nil, err)
	_, err = s.Add(s.ctx, "x", "y", credentials.Values{ClientID: canaryID + " ", Secret: canarySecret + "\x00"})
	tell("broken", fault.From(err), err)
	opened, err := s.Active(s.ctx, credentials.NicePay, credentials.Sandbox)
	tell("opened", opened, err)
	verifying, err := s.Verifying(s.ctx, credentials.NicePay)
	tell("verifying", verifying, err)
	tell("values", v, nil)
	next, err := s.Rotate(s.ctx, c.ID, v)
	tell("rotate", next, err)
	list, err := s.List(s.ctx, credentials.Filter{})
	tell("list", list, err)
	answer, err := credentials.Tools(s.Service)[0].Endpoint(s.ctx, &tool.Call{Input: []byte(`{}`)})
	tell("tool", string(answer.(*tool.Result).Data), err)
	_, err = s.Deactivate(s.ctx, next.ID, "x")
	tell("deactivate", nil, err)
	var rows string
	if err := s.owner.QueryRow(
		t.Context(),
		`SELECT (SELECT string_agg(c::text || encode(client_id_ct, 'escape') || encode(secret_ct, 'escape'), '') FROM payments.credentials c)
		|| (SELECT string_agg(c::text, '') FROM audit.calls c)`,
	).Scan(
		&rows,
	); err != nil {
		t.Fatal(err)
	}
	everything := said.String() + rows
	for _, secret := range []string{canaryID[4 : len(canaryID)-4], canarySecret[:12], canarySecret[len(canarySecret)-12:]} {
		if i := strings.Index(everything, secret); i >= 0 {
			t.Errorf("%q shows: %s", secret, everything[max(0, i-200):i+50])
		}
	}
	if !strings.Contains(everything, "S2_c****4d49") {
		t.Error("the mask does not show")
	}
}

// TestExamples executes each example of the tool on a fresh store.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.exec(
		t,
		`INSERT INTO payments.credentials (provider, env, client_id_ct, client_id_mask, secret_ct, active, created_by, created_at, updated_at)
		VALUES ('nicepay', 'sandbox', '', 'S2_a****9a56', '', true, 'ada', '2026-01-15T09:00:00Z', '2026-01-15T09:00:00Z'),
		('nicepay', 'production', '', 'R2_0****77aa', '', false, 'ada', '2026-01-15T10:00:00Z', '2026-02-15T09:00:00Z'),
		('nicepay', 'production', '', 'R2_9****01cd', '', true, 'ada', '2026-02-15T09:00:00Z', '2026-02-15T09:00:00Z')`,
	)
	declared := credentials.Tools(s.Service)[0]
	spec := declared.Spec
	var output jsonschema.Schema
	if err := json.Unmarshal(spec.Output, &output); err != nil {
		t.Fatal(err)
	}
	resolved, err := output.Resolve(nil)
	if err != nil || len(spec.Examples) == 0 {
		t.Fatal(err)
	}
	for i, e := range spec.Examples {
		answer, err := declared.Endpoint(s.ctx, &tool.Call{Tool: spec.Name, Input: e.Request})
		if err != nil {
			t.Fatal(err)
		}
		data, count := answer.(*tool.Result).Data, answer.(*tool.Result).Count
		var value any
		if err := errors.Join(json.Unmarshal(data, &value), resolved.Validate(value)); err != nil {
			t.Errorf("%v in %s", err, data)
		}
		var want bytes.Buffer
		if err := json.Compact(&want, e.Data); err != nil {
			t.Fatal(err)
		}
		if spec.Examples[i].Data, spec.Examples[i].Count = data, count; !*update && (want.String() != string(data) || count != e.Count) {
			t.Errorf(
				"%s: got %d %s\nwant %d %s\n(go test -run TestExamples -update writes the answers)",
				e.Title,
				count,
				data,
				e.Count,
				&want,
			)
		}
	}
	if *update {
		b, err := json.MarshalIndent(spec.Examples, "", "  ")
		if err = errors.Join(err, os.WriteFile(filepath.Join("examples", spec.Name+".json"), append(b, '\n'), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for body, want := range map[string]int{`{}`: 3, `{"env":null}`: 3, `{"env":"sandbox"}`: 1, `{"env":"production"}`: 2,
		`{"active_only":true}`:                    2,
		`{"env":"production","active_only":true}`: 1} {
		if got, err := declared.Endpoint(s.ctx, &tool.Call{Input: []byte(body)}); err != nil || got.(*tool.Result).Count != want {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{`{"env":"live"}`, `{"env":""}`, `{"active_only":"yes"}`, `{"limit":1}`} {
		if _, err := declared.Endpoint(s.ctx, &tool.Call{Input: []byte(body)}); !fault.Is(err, fault.Validation) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
