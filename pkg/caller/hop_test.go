package caller_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
)

var ada = caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: "ada@hub.example", CredentialID: "ses_1", HubUser: "usr_1",
	Roles: []string{"admin", "reviewer"}, Email: "ada@hub.example", Name: "Ada", RequestID: "req_1"}

var agent = caller.Caller{
	Kind:           caller.Key,
	Service:        "crm",
	ExternalUserID: "u1",
	CredentialID:   "ak_1",
	Scopes:         []string{"query", "sql"},
	RequestID:      "req_1",
}

// everybody is a rule that takes all that can be said.
var everybody = caller.Rule{
	caller.Gateway: {caller.Key, caller.App, caller.User, caller.Visitor, caller.Service},
	"authoring":    {caller.Key, caller.App, caller.User, caller.Visitor, caller.Service},
	"review":       {caller.Key, caller.App, caller.User, caller.Visitor, caller.Service},
}

// pass is a call from one process to another.
func pass(ctx context.Context, from, to *caller.Keys, name string, show bool, takes caller.Rule) (context.Context, error) {
	h := http.Header{}
	if err := from.Present(ctx, h, name, show); err != nil {
		return nil, err
	}
	return to.Accept(context.Background(), h, takes)
}

func TestWhoeverTheGatewayPresentsArrives(t *testing.T) {
	gateway, review := callertest.Keys(t, caller.Gateway), callertest.Keys(t, "review", caller.Gateway)
	for _, want := range []caller.Caller{ada, agent, {Kind: caller.App, Service: "shop", HubUser: "usr_2"}, {Kind: caller.Visitor}, {},
		caller.Itself(caller.Gateway)} {
		got, err := pass(caller.With(t.Context(), want), gateway, review, "review", true, everybody)
		if err != nil {
			t.Errorf("%+v: %v", want, err)
			continue
		}
		if want.Kind == "" {
			want = caller.Itself(caller.Gateway)
		}
		if !reflect.DeepEqual(caller.From(got), want) {
			t.Errorf("%+v has become %+v", want, caller.From(got))
		}
	}
	ctx, err := pass(
		caller.Alone(caller.With(t.Context(), ada), caller.Gateway),
		gateway,
		review,
		"review",
		false,
		caller.Neighbour(caller.Gateway),
	)
	if want := caller.Itself(
		caller.Gateway,
	); err != nil || caller.From(ctx).RequestID != "req_1" || caller.From(ctx).Service != want.Service ||
		caller.From(ctx).Kind != want.Kind {
		t.Errorf("%+v, %v", caller.From(ctx), err)
	}
}

// TestAServiceCallsAsItself and shows who has called it, when it is asked to and can.
func TestAServiceCallsAsItself(t *testing.T) {
	gateway, review, authoring, query := callertest.Keys(
		t,
		caller.Gateway,
	), callertest.Keys(
		t,
		"review",
		caller.Gateway,
	), callertest.Keys(
		t,
		"authoring",
		caller.Gateway,
		"review",
	), callertest.Keys(
		t,
		"query",
		caller.Gateway,
		"authoring",
	)
	called, err := pass(caller.With(t.Context(), ada), gateway, review, "review", false, caller.Browsers())
	if err != nil {
		t.Fatal(err)
	}
	itself := caller.Itself("review")
	itself.RequestID = "req_1"
	for name, c := range map[string]struct {
		ctx  context.Context
		show bool
		want caller.Caller
	}{
		"not shown":        {called, false, itself},
		"shown":            {called, true, ada},
		"by itself":        {caller.Alone(called, "review"), true, itself},
		"a job":            {t.Context(), true, caller.Itself("review")},
		"made up":          {caller.With(called, ada), true, itself}, // whoever says so inside the process has no token
		"made up gateway":  {caller.With(called, caller.Itself(caller.Gateway)), true, caller.Itself("review")},
		"a request id, no": {caller.With(t.Context(), caller.Caller{RequestID: "a b"}), false, caller.Itself("review")},
	} {
		got, err := pass(c.ctx, review, authoring, "authoring", c.show, everybody)
		if err != nil || !reflect.DeepEqual(caller.From(got), c.want) {
			t.Errorf("%s: %+v, %v", name, caller.From(got), err)
		}
		// It was shown, so it cannot be shown once more: it is not for authoring.
		if err == nil {
			if onward, err := pass(
				got,
				authoring,
				query,
				"query",
				true,
				everybody,
			); err != nil ||
				caller.From(onward).Kind != caller.Service {
				t.Errorf("%s, passed on: %+v, %v", name, caller.From(onward), err)
			}
		}
	}
}

func TestRules(t *testing.T) {
	gateway, review, authoring := callertest.Keys(
		t,
		caller.Gateway,
	), callertest.Keys(
		t,
		"review",
		caller.Gateway,
	), callertest.Keys(
		t,
		"authoring",
		caller.Gateway,
		"review",
		"query",
	)
	people := caller.Rule{"review": {caller.User}}
	rules := map[string]caller.Rule{
		"nobody":                nil,
		"agents":                caller.Agents(),
		"browsers":              caller.Browsers(),
		"review":                caller.Neighbour("review"),
		"gateway":               caller.Neighbour(caller.Gateway),
		"people through review": people,
	}
	for presenter, c := range map[string]struct {
		keys  *caller.Keys
		who   caller.Caller
		taken []string
	}{
		"an agent": {gateway, agent, []string{"agents"}}, "an app": {gateway, caller.Caller{Kind: caller.App}, []string{"agents"}},
		"a user": {gateway, ada, []string{"browsers"}}, "a visitor": {gateway, caller.Caller{Kind: caller.Visitor}, []string{"browsers"}},
		"the gateway": {gateway, caller.Itself(caller.Gateway), []string{"gateway"}},
		"review":      {review, caller.Caller{}, []string{"review"}},
		"query":       {callertest.Keys(t, "query"), caller.Caller{}, nil},
	} {
		for name, rule := range rules {
			_, err := pass(caller.With(t.Context(), c.who), c.keys, authoring, "authoring", true, rule)
			if want := slices.Contains(c.taken, name); want != (err == nil) || err != nil && !fault.Is(err, fault.Scope) {
				t.Errorf("%s at an operation for %s: %v", presenter, name, err)
			}
		}
	}
	called, err := pass(caller.With(t.Context(), ada), gateway, review, "review", false, caller.Browsers())
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range rules {
		_, err := pass(called, review, authoring, "authoring", true, rule)
		if (name == "people through review") != (err == nil) {
			t.Errorf("a user through review at an operation for %s: %v", name, err)
		}
	}
}

func TestForgeriesAreRefused(t *testing.T) {
	keys := callertest.Keys(t, "review", caller.Gateway, "authoring", "query", "auth")
	for _, who := range []caller.Caller{ada, agent} {
		for _, f := range callertest.Forgeries(caller.Gateway, "review", who, "authoring", "query", "auth", "review") {
			ctx, err := keys.Accept(t.Context(), f.Header, caller.Rule{caller.Gateway: {who.Kind}})
			if !fault.Is(err, fault.AuthInvalid) && !fault.Is(err, fault.AuthMissing) || ctx != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
			for _, values := range f.Header {
				if err != nil && len(values[0]) > 8 && strings.Contains(err.Error(), values[0]) {
					t.Errorf("%s: the error quotes the token: %v", f.Name, err)
				}
			}
		}
		good := http.Header{caller.Header: {callertest.NewToken(caller.Gateway, "review", who).String()}}
		if _, err := keys.Accept(t.Context(), good, caller.Rule{caller.Gateway: {who.Kind}}); err != nil {
			t.Errorf("what they were made from: %v", err)
		}
	}
}

// TestWhatIsShownCannotCall: a service that is shown a token can use it neither where it was
// made for nor anywhere else.
func TestWhatIsShownCannotCall(t *testing.T) {
	names := []string{caller.Gateway, "review", "authoring", "query"}
	gateway, review := callertest.Keys(t, caller.Gateway), callertest.Keys(t, "review", names...)
	called, err := pass(caller.With(t.Context(), ada), gateway, review, "review", false, caller.Browsers())
	if err != nil {
		t.Fatal(err)
	}
	caught := http.Header{} // what authoring gets to see
	if err := review.Present(called, caught, "authoring", true); err != nil {
		t.Fatal(err)
	}
	if _, err := callertest.Keys(t, "authoring", names...).Accept(t.Context(), caught, caller.Rule{"review": {caller.User}}); err != nil {
		t.Fatalf("nothing was caught: %v", err)
	}
	tokens := []string{caught.Get(caller.Header), caught.Get(caller.ShownHeader)}
	signed, proof, _ := strings.Cut(tokens[0], "~")
	tokens = append(
		tokens,
		signed,
		tokens[1]+"~"+proof,
		tokens[1]+"~",
		callertest.HeaderOf(t, "authoring", "review").Get(caller.Header),
		callertest.HeaderOf(t, "authoring", "query").Get(caller.Header),
		"",
	)
	for _, target := range []string{"review", "query", caller.Gateway} {
		keys := callertest.Keys(t, target, names...)
		for _, first := range tokens {
			for _, second := range tokens {
				h := http.Header{}
				h.Set(caller.Header, first)
				h.Set(caller.ShownHeader, second)
				ctx, err := keys.Accept(t.Context(), h, everybody)
				if err == nil && caller.From(ctx).Kind != caller.Service {
					t.Errorf("at %s authoring passes for %+v with %.20s… and %.20s…", target, caller.From(ctx), first, second)
				}
			}
		}
	}
}

func TestATokenEnds(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	gateway, review := callertest.KeysAt(t, clock, caller.Gateway), callertest.KeysAt(t, clock, "review", caller.Gateway)
	h := http.Header{}
	if err := gateway.Present(caller.With(t.Context(), ada), h, "review", false); err != nil {
		t.Fatal(err)
	}
	minted := now
	for _, c := range []struct {
		after time.Duration
		holds bool
	}{{0, true}, {59 * time.Second, true}, {63 * time.Second, true}, {66 * time.Second, false}, {63 * time.Second, true}, {time.Hour, false}} {
		now = minted.Add(c.after)
		if _, err := review.Accept(
			t.Context(),
			h,
			caller.Browsers(),
		); (err == nil) != c.holds ||
			err != nil && !fault.Is(err, fault.AuthInvalid) {
			t.Errorf("after %s: %v", c.after, err) // it was verified before: its end counts at each use
		}
	}
	// The gateway itself uses it for 20 s.
	token := func() string {
		h := http.Header{}
		if err := gateway.Present(caller.With(t.Context(), ada), h, "review", false); err != nil {
			t.Fatal(err)
		}
		return h.Get(caller.Header)
	}
	first := token()
	now = now.Add(19 * time.Second)
	if token() != first {
		t.Error("a token of 19 s was not used again")
	}
	now = now.Add(2 * time.Second)
	if token() == first {
		t.Error("a token of 21 s was used again")
	}
}

// TestNoTwoCallersShareAToken changes each part of a caller, whatever parts there will be.
func TestNoTwoCallersShareAToken(t *testing.T) {
	gateway, review := callertest.Keys(t, caller.Gateway), callertest.Keys(t, "review", caller.Gateway)
	seen := map[string]string{}
	present := func(name, audience string, c caller.Caller) string {
		t.Helper()
		h := http.Header{}
		if err := gateway.Present(caller.With(t.Context(), c), h, audience, false); err != nil {
			t.Fatal(err)
		}
		token := h.Get(caller.Header)
		if other, taken := seen[token]; taken && other != name {
			t.Errorf("%s has the token of %s", name, other)
		}
		seen[token] = name
		if audience == "review" {
			if ctx, err := review.Accept(t.Context(), h, everybody); err != nil || !reflect.DeepEqual(caller.From(ctx), c) {
				t.Errorf("%s: %+v is %+v, %v", name, c, caller.From(ctx), err)
			}
		}
		return token
	}
	original := present("original", "review", ada)
	if present("original", "review", ada) != original {
		t.Error("the token of the same caller was not used again")
	}
	other := ada
	other.RequestID = "req_2"
	if present("original", "review", other) != original {
		t.Error("the request id makes another token")
	}
	present("another audience", "query", ada)
	fields := reflect.TypeFor[caller.Caller]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		changed := ada
		v := reflect.ValueOf(&changed).Elem().Field(i)
		switch {
		case name == "RequestID":
			continue
		case name == "Kind":
			v.SetString(caller.Key)
		case v.Kind() == reflect.String:
			v.SetString(v.String() + "x")
		default:
			v.Set(reflect.ValueOf([]string{"another"}))
		}
		present(name, "review", changed)
	}
	for name, c := range map[string]caller.Caller{
		"one role": {Kind: caller.User, Roles: []string{"a,b"}}, "two roles": {Kind: caller.User, Roles: []string{"a", "b"}},
		"roles in another order": {Kind: caller.User, Roles: []string{"b", "a"}},
		"scopes":                 {Kind: caller.User, Scopes: []string{"a", "b"}},
		"some of each":           {Kind: caller.User, Scopes: []string{"a"}, Roles: []string{"b"}},
		"shifted":                {Kind: caller.User, Service: "ab", ExternalUserID: "c"},
		"shifted again":          {Kind: caller.User, Service: "a", ExternalUserID: "bc"},
	} {
		present(name, "review", c)
	}
}

// TestCallersStayApart draws callers from a small world, in which they are nearly alike.
func TestCallersStayApart(t *testing.T) {
	gateway, review := callertest.Keys(t, caller.Gateway), callertest.Keys(t, "review", caller.Gateway)
	text := rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00b", "\x01a", "é"})
	list := rapid.SliceOfN(text, 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		c := caller.Caller{
			Kind:           rapid.SampledFrom([]string{caller.Key, caller.App, caller.User, caller.Visitor}).Draw(t, "kind"),
			Service:        text.Draw(t, "service"),
			ExternalUserID: text.Draw(t, "external"),
			CredentialID: text.Draw(
				t,
				"credential",
			),
			HubUser:   text.Draw(t, "user"),
			Email:     text.Draw(t, "email"),
			Name:      text.Draw(t, "name"),
			Scopes:    list.Draw(t, "scopes"),
			Roles:     list.Draw(t, "roles"),
			RequestID: "req_1",
		}
		ctx, err := pass(caller.With(context.Background(), c), gateway, review, "review", false, everybody)
		if err != nil || !reflect.DeepEqual(caller.From(ctx), c) {
			t.Fatalf("%+v is %+v, %v", c, caller.From(ctx), err)
		}
	})
}

// TestManyCallersAtOnce has receivers that write into what they were given.
func TestManyCallersAtOnce(t *testing.T) {
	gateway, review := callertest.Keys(t, caller.Gateway), callertest.Keys(t, "review", caller.Gateway)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 400 {
				who := fmt.Sprint("user ", worker, " ", i%150)
				ctx, err := pass(
					caller.With(context.Background(), caller.Caller{Kind: caller.Key, ExternalUserID: who, Scopes: []string{who}}),
					gateway,
					review,
					"review",
					false,
					caller.Agents(),
				)
				if got := caller.From(ctx); err != nil || got.ExternalUserID != who || !slices.Equal(got.Scopes, []string{who}) {
					t.Errorf("%s is %+v, %v", who, got, err)
					return
				}
				caller.From(ctx).Scopes[0] = "admin:write" // a receiver that forgets its manners
			}
		})
	}
	wg.Wait()
}

func TestRequestIDTravelsBesideTheToken(t *testing.T) {
	keys := callertest.Keys(t, "review", caller.Gateway)
	for id, want := range map[string]string{"": "", "req_1": "req_1", strings.Repeat("a", 128): strings.Repeat("a", 128),
		strings.Repeat("a", 129): "", "a b": "", "a\tb": "", `"><script>`: "", "é": "", "a,b": ""} {
		h := callertest.Header(t, "review", caller.Caller{Kind: caller.Visitor, RequestID: "req_9"})
		if h[caller.RequestHeader] = []string{id}; strings.Contains(h.Get(caller.Header), "req_9") {
			t.Error("the token holds the request id")
		}
		ctx, err := keys.Accept(t.Context(), h, caller.Browsers())
		if err != nil || caller.From(ctx).RequestID != want {
			t.Errorf("%q: %+v, %v", id, caller.From(ctx), err)
		}
	}
	// Nor does an id inside a token count.
	h := http.Header{caller.Header: {callertest.NewToken(caller.Gateway, "review", ada).With(map[string]any{"rid": "req_8"}).String()}}
	if ctx, err := keys.Accept(t.Context(), h, caller.Browsers()); err != nil || caller.From(ctx).RequestID != "" {
		t.Errorf("%+v, %v", caller.From(ctx), err)
	}
}
