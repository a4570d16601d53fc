package auth_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/service"
	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

// serve mounts the desk's service and returns its URL, and a token that it takes.
func (d *desk) serve(t *testing.T) (url, token string) {
	t.Helper()
	mux := http.NewServeMux()
	internal := rpc.Server{Mux: mux, Keys: callertest.Keys(t, "auth", caller.Gateway, "review-control"), Logger: d.config.Logger}
	service.Operations(internal, auth.Operations(d.Service, nil)...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, callertest.Header(t, "auth", caller.Itself(caller.Gateway)).Get(caller.Header)
}

func post(t *testing.T, url, token, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+auth.VerifyPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set(caller.Header, token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

func TestVerifyOverTheWire(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url, _ := d.serve(t)
	client := remote.New(
		remote.Options{
			Service:   "auth",
			Instancer: sd.FixedInstancer{strings.TrimPrefix(url, "http://")},
			Keys:      callertest.Keys(t, caller.Gateway),
			Logger:    slog.New(slog.DiscardHandler),
			Patience:  hubtest.Patience,
		},
	)
	t.Cleanup(client.Close)
	type answer struct {
		ID, Service, Status string
		Scopes              []string
		Limits              map[string]int
		ExpiresAt           *time.Time `json:"expires_at"`
	}
	ask := func(key string) (answer, error) {
		return remote.Operation[map[string]string, answer]{
			Path:       "/internal/apikeys/verify",
			Repeatable: true,
		}.Call(
			t.Context(),
			client,
			map[string]string{"key": key},
		)
	}
	k, secret := d.issue(t, func(in *auth.Issue) { in.Lifetime = time.Hour })
	got, err := ask(secret.Reveal())
	if err != nil || got.ID != k.ID || got.Service != k.ID || got.Status != "active" || strings.Join(got.Scopes, ",") != "explore,query" ||
		!got.ExpiresAt.Equal(*k.ExpiresAt) ||
		got.Limits["user_per_minute"] != 120 || got.Limits["user_burst"] != 60 ||
		got.Limits["service_per_minute"] != 1200 ||
		got.Limits["service_burst"] != 300 {
		t.Errorf("answer %+v, %v", got, err)
	}
	d.clock.Advance(time.Hour)
	if got, err := ask(secret.Reveal()); err != nil || got.Status != "expired" {
		t.Errorf("answer %+v, %v", got, err)
	}
	if _, err := d.Revoke(d.ctx, k.ID, "over"); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(secret.Reveal()); err != nil || got.Status != "revoked" {
		t.Errorf("answer %+v, %v", got, err)
	}
	for name, key := range map[string]string{"unknown": auth.NewSecret().Reveal(), "malformed": "crm_x", "empty": "",
		"not UTF-8": "crm_\xff"} {
		if _, err := ask(key); !fault.Is(err, fault.AuthInvalid) || fault.From(err).Message != "The API key is not valid." {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNames tells review-control what keys are called, and nobody else.
func TestNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url, _ := d.serve(t)
	ask := func(as string, ids ...string) (map[string]map[string]string, error) {
		client := remote.New(
			remote.Options{
				Service:   "auth",
				Instancer: sd.FixedInstancer{strings.TrimPrefix(url, "http://")},
				Keys:      callertest.Keys(t, as),
				Logger:    slog.New(slog.DiscardHandler),
				Patience:  hubtest.Patience,
			},
		)
		defer client.Close()
		return remote.Operation[map[string][]string, map[string]map[string]string]{Path: "/internal/apikeys/names", Repeatable: true}.
			Call(caller.Alone(t.Context(), as), client, map[string][]string{"ids": ids})
	}
	first, _ := d.issue(t, func(in *auth.Issue) { in.Name = "캠페인 agent" })
	gone, _ := d.issue(t)
	d.issue(t)
	if _, err := d.Revoke(d.ctx, gone.ID, "over"); err != nil {
		t.Fatal(err)
	}
	before := len(d.audit(t))
	got, err := ask("review-control", first.ID, gone.ID, first.ID, "ak_nobody", "", "a\x00b", "%")
	if want := map[string]map[string]string{
		"names": {first.ID: "캠페인 agent", gone.ID: "agent"},
	}; err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ask("review-control"); err != nil || len(got["names"]) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ask("review-control", make([]string, 101)...); !fault.Is(err, fault.Validation) {
		t.Errorf("101 ids: %v", err)
	}
	if _, err := ask(caller.Gateway, first.ID); err == nil {
		t.Error("the gateway is told")
	}
	if after := len(d.audit(t)); after != before {
		t.Errorf("%d audit rows became %d", before, after)
	}
}

func TestVerifyWire(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url, token := d.serve(t)
	k, secret := d.issue(t)
	_, _, body := post(t, url, token, `{"key":"`+secret.Reveal()+`","added_later":[1]}`)
	want := `{"id":"` + k.ID + `","service":"` + k.ID +
		`","scopes":["explore","query"],"limits":{"user_per_minute":120,"user_burst":60,"service_per_minute":1200,"service_burst":300},` +
		`"status":"active","expires_at":null}`
	if body != want {
		t.Errorf("answer %s\nwant   %s", body, want)
	}
	_, unknownHeader, unknown := post(t, url, token, `{"key":"`+auth.NewSecret().Reveal()+`"}`)
	malformedStatus, malformedHeader, malformed := post(t, url, token, `{"key":"crm_x"}`)
	if unknown != malformed || malformedStatus != 401 || unknownHeader.Get(rpc.FaultHeader) != malformedHeader.Get(rpc.FaultHeader) {
		t.Errorf("unknown %s, malformed %s", unknown, malformed)
	}
	for name, c := range map[string]struct {
		token, body string
		status      int
		code        fault.Code
	}{
		"no token":      {"", `{}`, 401, fault.AuthMissing},
		"forged token":  {token + "x", `{}`, 401, fault.AuthInvalid},
		"no key":        {token, `{}`, 401, fault.AuthInvalid},
		"null key":      {token, `{"key":null}`, 401, fault.AuthInvalid},
		"huge key":      {token, `{"key":"` + strings.Repeat("x", 500_000) + `"}`, 401, fault.AuthInvalid},
		"number":        {token, `{"key":77777}`, 400, fault.Validation},
		"list":          {token, `[]`, 400, fault.Validation},
		"nothing":       {token, ``, 400, fault.Validation},
		"cut":           {token, `{"key":"` + secret.Reveal(), 400, fault.Validation},
		"deep":          {token, strings.Repeat("[", 100_000), 400, fault.Validation},
		"too large":     {token, strings.Repeat(" ", 2<<20), 400, fault.Validation},
		"two documents": {token, `{"key":"x"}{"key":"y"}`, 400, fault.Validation},
	} {
		status, header, body := post(t, url, c.token, c.body)
		if status != c.status || header.Get(rpc.FaultHeader) != string(c.code) || strings.Contains(body, secret.Reveal()) ||
			strings.Contains(body, "77777") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if strings.Contains(d.log.String(), secret.Reveal()[8:42]) {
		t.Errorf("the log holds the key: %s", d.log)
	}
}

// TestStoreDown wants E_DB and no secret in what is logged about it.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, secret := d.issue(t)
	var log bytes.Buffer
	d.config.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	pool := hubtest.Pool(t, d.db.URL("auth"))
	d.config.Store = postgres.New(pool)
	pool.Close()
	d.Service = auth.New(d.config)
	url, token := d.serve(t)
	status, _, body := post(t, url, token, `{"key":"`+secret.Reveal()+`"}`)
	if status < 500 || strings.Contains(body+log.String(), secret.Reveal()[8:42]) || log.Len() == 0 {
		t.Errorf("%d %s; log %s", status, body, &log)
	}
}
