package oidc_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/telemetry"
	"hub.internal/services/auth/oidc"
)

// TestTheProviderIsADependency: what it answers is counted, and what it does not.
func TestTheProviderIsADependency(t *testing.T) {
	tel, err := telemetry.Start(t.Context(), telemetry.Config{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Close(context.Background()) })
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/good/") {
			_, _ = w.Write([]byte(`{"issuer":"http://` + r.Host + `/good"}`))
		} else {
			http.Error(w, "", http.StatusBadGateway)
		}
	}))
	t.Cleanup(provider.Close)
	for issuer, well := range map[string]bool{provider.URL + "/good": true, provider.URL + "/bad": false, "http://127.0.0.1:1": false} {
		p, err := oidc.New(oidc.Config{Issuer: issuer, ClientID: "hub", PublicURL: "https://hub.example"})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Reach(t.Context()); (err == nil) != well {
			t.Errorf("%s: %v", issuer, err)
		}
	}
	w := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, outcome := range []string{"ok", "http_5xx", "unanswered"} {
		found := false
		for line := range strings.Lines(w.Body.String()) {
			found = found || strings.HasPrefix(line, "hub_dependency_duration_seconds_count{") && strings.Contains(line, `dependency="oidc"`) &&
				strings.Contains(line, `operation="call"`) && strings.Contains(line, `outcome="`+outcome+`"`) && strings.HasSuffix(line, " 1\n")
		}
		if !found {
			t.Errorf("no call of oidc has the outcome %s", outcome)
		}
	}
}

// TestGroupsMapToRoles: a claim is a list of groups, or one group as a text, whose name may have spaces.
func TestGroupsMapToRoles(t *testing.T) {
	p, err := oidc.New(oidc.Config{Issuer: "https://issuer.example", ClientID: "hub", PublicURL: "https://hub.example", RolesClaim: "groups",
		Roles: map[string]string{"Hub Admins": "admin", "reviewers": "reviewer"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		groups any
		roles  []string
	}{
		{"reviewers", []string{"reviewer"}}, {"Hub Admins", []string{"admin"}}, {"Book reviewers", nil}, {"", nil}, {7.0, nil},
		{[]any{"reviewers", "Hub Admins"}, []string{"reviewer", "admin"}}, {[]any{"Book reviewers", 7.0}, nil}, {[]any{}, nil},
	} {
		who, err := p.Identity(map[string]any{"email": "ada@example.com", "email_verified": true, "groups": c.groups})
		if err != nil || !slices.Equal(who.Roles, c.roles) || who.Roles == nil {
			t.Errorf("groups %#v: roles %#v, %v", c.groups, who.Roles, err)
		}
	}
}
