package notify_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hub.internal/services/payments"
	"hub.internal/services/payments/notify"
)

var otherSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// TestSignatureIsTheStandards holds to the vector of the Standard Webhooks libraries.
func TestSignatureIsTheStandards(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	c := local()
	c.Now = func() time.Time { return time.Unix(1614265330, 999_999_999) }
	m := payments.Delivery{
		ID:      "msg_p5jXN8AQM9LWM0D4loKWxJek",
		URL:     r.URL + "/hook?a=b",
		Body:    []byte(`{"test": 2432232314}`),
		Secrets: []string{secret, otherSecret},
	}
	o := notify.New(c).Send(t.Context(), m)
	if !o.Delivered || o.Status != 200 || o.Error != "" || o.Took <= 0 {
		t.Fatalf("%+v", o)
	}
	got := r.received[0]
	signatures := strings.Split(got.Header.Get("webhook-signature"), " ")
	if len(signatures) != 2 || signatures[0] != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" ||
		got.Header.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("headers %v", got.Header)
	}
	if got.Method != "POST" || got.RequestURI != "/hook?a=b" || string(r.bodies[0]) != string(m.Body) ||
		got.ContentLength != int64(len(m.Body)) {
		t.Errorf("%s %s: %s", got.Method, got.RequestURI, r.bodies[0])
	}
	var names []string
	for name := range got.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	if fmt.Sprint(names) != "[Connection Content-Length Content-Type User-Agent Webhook-Id Webhook-Signature Webhook-Timestamp]" ||
		got.Header.Get(
			"User-Agent",
		) != "Hub-Webhooks/1" || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("webhook-id") != m.ID {
		t.Errorf("headers %v", got.Header)
	}
}

// TestReceiversVerify: with the library, by either secret, and by no other nor for other bytes.
func TestReceiversVerify(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	m := message(r.URL)
	m.Secrets = []string{secret, otherSecret}
	if o := notify.New(local()).Send(t.Context(), m); !o.Delivered {
		t.Fatalf("%+v", o)
	}
	for s, want := range map[string]bool{secret: true, otherSecret: true, "whsec_" +
		base64.StdEncoding.EncodeToString(make([]byte, 32)): false} {
		w, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify(r.bodies[0], r.received[0].Header); (err == nil) != want {
			t.Errorf("%s: %v", s, err)
		}
		if err := w.Verify(append(slices.Clone(r.bodies[0]), ' '), r.received[0].Header); err == nil {
			t.Error("other bytes verify")
		}
	}
}

// TestAnotherImplementationVerifies asks the npm package standardwebhooks.
func TestAnotherImplementationVerifies(t *testing.T) {
	t.Parallel()
	dir := installVerifier(t)
	r := newReceiver(t, nil)
	m := message(r.URL)
	m.Secrets, m.Body = []string{otherSecret, secret}, []byte(`{"data":{"order":{"orderName":"물 한 잔 ☕ <b>"}}}`)
	if o := notify.New(local()).Send(t.Context(), m); !o.Delivered {
		t.Fatalf("%+v", o)
	}
	headers := map[string]string{}
	for name := range r.received[0].Header {
		headers[strings.ToLower(name)] = r.received[0].Header.Get(name)
	}
	type question struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	asked, err := json.Marshal(
		[]question{
			{secret, headers, string(r.bodies[0])},
			{otherSecret, headers, string(r.bodies[0])},
			{secret, headers, string(r.bodies[0]) + " "},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "verify.mjs")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(string(asked))
	said, err := cmd.CombinedOutput()
	if err != nil || string(said) != "holds\nholds\nrefused: No matching signature found\n" {
		t.Errorf("%s: %v", said, err)
	}
}

// installVerifier makes the npm package standardwebhooks available, once a machine.
func installVerifier(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here; the signature is verified by the npm package standardwebhooks, too", program)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "hub", "standardwebhooks-1.1.1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json", "verify.mjs"} {
		b, err := os.ReadFile(filepath.Join("testdata", "standardwebhooks", name))
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil {
		return dir
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("standardwebhooks cannot be installed: %v: %s", err, out)
	}
	return dir
}

func TestOnlySuccessDelivers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		status int
		retry  string
		want   payments.Attempt
	}{
		{200, "60", payments.Attempt{Delivered: true}},
		{201, "", payments.Attempt{Delivered: true}},
		{204, "", payments.Attempt{Delivered: true}},
		{299, "", payments.Attempt{Delivered: true}},
		{304, "", payments.Attempt{Error: "answered 304: redirects are not followed"}},
		{400, "60", payments.Attempt{Error: "answered 400"}},
		{404, "", payments.Attempt{Error: "answered 404"}},
		{410, "", payments.Attempt{Error: "answered 410", Gone: true}},
		{429, "60", payments.Attempt{Error: "answered 429", RetryAfter: time.Minute}},
		{429, "", payments.Attempt{Error: "answered 429"}},
		{429, "-5", payments.Attempt{Error: "answered 429"}},
		{429, "soon", payments.Attempt{Error: "answered 429"}},
		{429, "99999999999999999999", payments.Attempt{Error: "answered 429"}},
		{503, "9223372036854775807", payments.Attempt{Error: "answered 503", RetryAfter: 24 * time.Hour}},
		{503, "172800", payments.Attempt{Error: "answered 503", RetryAfter: 24 * time.Hour}},
		{503, "Fri, 02 Jan 2026 03:06:05 GMT", payments.Attempt{Error: "answered 503", RetryAfter: 2 * time.Minute}},
		{503, "Fri, 02 Jan 2026 03:00:00 GMT", payments.Attempt{Error: "answered 503"}},
		{503, "Fri, 02 Jan 2099 03:00:00 GMT", payments.Attempt{Error: "answered 503", RetryAfter: 24 * time.Hour}},
		{500, "60", payments.Attempt{Error: "answered 500"}},
	} {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", c.retry)
			w.WriteHeader(c.status)
		})
		config := local()
		config.Now = func() time.Time { return at }
		got := send(t, config, r.URL)
		got.Took, c.want.Status = 0, c.status
		if got != c.want {
			t.Errorf("%d %q: %+v", c.status, c.retry, got)
		}
	}
}

func TestOnlyTheBeginningOfAnAnswerIsKept(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"":                        "",
		"ok\n":                    "ok\n",
		"a\x00b\x1b[31m\r\u202ec": "a.b.[31m..c",
		"\xff\xfe":                "..",
		strings.Repeat("물", 200):  strings.Repeat("물", 166),
		strings.Repeat("x", 5000): strings.Repeat("x", 500),
	} {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(sent)) })
		if o := send(t, local(), r.URL); o.Answer != want || !o.Delivered {
			t.Errorf("%q: %q", sent, o.Answer)
		}
	}
}

// TestASlowReceiverIsGivenUp: one that never ends its head, one that never ends its body, and one that sends without end.
func TestASlowReceiverIsGivenUp(t *testing.T) {
	t.Parallel()
	drip := func(w http.ResponseWriter, r *http.Request, every time.Duration, text string) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(text)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(every)
		}
	}
	raw := func(head string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for _, err := conn.Write([]byte(head)); err == nil; _, err = conn.Write([]byte("X-Drip: 1\r\n")) {
				time.Sleep(time.Millisecond)
			}
		}
	}
	c := local()
	c.Timeout = 300 * time.Millisecond
	for name, r := range map[string]struct {
		answer http.HandlerFunc
		want   payments.Attempt
	}{
		"no answer":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, payments.Attempt{Error: "no answer in time"}},
		"endless head": {raw("HTTP/1.1 200 OK\r\n"), payments.Attempt{Error: "no answer in time"}},
		"large head": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) },
			payments.Attempt{Error: "the connection broke, or the answer is not one of HTTP"}},
		"informational": {func(w http.ResponseWriter, r *http.Request) {
			for range 1000 {
				w.WriteHeader(http.StatusProcessing)
			}
			<-r.Context().Done()
		}, payments.Attempt{Error: "the connection broke, or the answer is not one of HTTP"}},
		"slow body": {func(w http.ResponseWriter, r *http.Request) { drip(w, r, 20*time.Millisecond, "") },
			payments.Attempt{Status: 200, Delivered: true}},
		"endless body": {func(w http.ResponseWriter, r *http.Request) { drip(w, r, 0, strings.Repeat("\n", 4096)) },
			payments.Attempt{Status: 200, Delivered: true, Answer: strings.Repeat("\n", 500)}},
		"no HTTP": {raw("SSH-2.0-x\r\n"), payments.Attempt{Error: "the connection broke, or the answer is not one of HTTP"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := c
			if name == "large head" || name == "no HTTP" {
				config.Timeout = time.Minute
			}
			o := send(t, config, newReceiver(t, r.answer).URL)
			if o.Took > time.Minute {
				t.Errorf("it took %s", o.Took)
			}
			if o.Took = 0; o != r.want && !(name == "endless head" && o.Error != "" && !o.Delivered) &&
				!(name == "informational" && !o.Delivered) {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestNothingIsKeptBetweenAttempts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/"})
	})
	sender := notify.New(local())
	for range 2 {
		if o := sender.Send(t.Context(), message(r.URL)); !o.Delivered {
			t.Fatalf("%+v", o)
		}
	}
	if r.count() != 2 || r.received[1].Header.Get("Cookie") != "" || r.received[0].RemoteAddr == r.received[1].RemoteAddr {
		t.Errorf("headers %v", r.received[1].Header)
	}
}

func TestWhatCannotBeSentIsNot(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	for name, change := range map[string]func(*payments.Delivery){
		"no id":              func(m *payments.Delivery) { m.ID = "" },
		"header in id":       func(m *payments.Delivery) { m.ID = "msg_1\r\nX-Evil: 1" },
		"dot in id":          func(m *payments.Delivery) { m.ID = "msg.1" },
		"header in URL":      func(m *payments.Delivery) { m.URL += "/ HTTP/1.1\r\nX-Evil: 1" },
		"user in URL":        func(m *payments.Delivery) { m.URL = strings.Replace(m.URL, "://", "://user:pass@", 1) },
		"no secret":          func(m *payments.Delivery) { m.Secrets = nil },
		"empty secret":       func(m *payments.Delivery) { m.Secrets = []string{"whsec_"} },
		"short secret":       func(m *payments.Delivery) { m.Secrets = []string{"whsec_c2hvcnQ="} },
		"secret of no form":  func(m *payments.Delivery) { m.Secrets = []string{secret, "hss_canary"} },
		"secret not encoded": func(m *payments.Delivery) { m.Secrets = []string{"whsec_canary!" + strings.Repeat("x", 40)} },
	} {
		m := message(r.URL)
		change(&m)
		if o := notify.New(local()).Send(t.Context(), m); o.Delivered || o.Error == "" || strings.Contains(o.Error, "canary") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if r.count() != 0 {
		t.Errorf("%d were sent", r.count())
	}
}

func TestTLSIsHeldTo(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r := &receiver{Server: server}
	r.Config.Handler = r.handler(nil)
	r.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	r.StartTLS()
	t.Cleanup(r.Close)
	if o := send(t, local(), r.URL); o.Delivered || o.Error != "the certificate of the host does not hold" {
		t.Errorf("an unknown authority: %+v", o)
	}
	c := notify.Config{Allow: onThisMachine, Roots: x509.NewCertPool()}
	c.Roots.AddCert(r.Certificate())
	if o := send(t, c, r.URL); !o.Delivered {
		t.Errorf("%+v", o)
	}
	if o := send(
		t,
		c,
		strings.Replace(newReceiver(t, nil).URL, "http:", "https:", 1),
	); o.Error != "the connection broke, or the answer is not one of HTTP" {
		t.Errorf("no TLS: %+v", o)
	}
	if o := send(t, c, newReceiver(t, nil).URL); !strings.HasSuffix(o.Error, "it has to begin with https://") {
		t.Errorf("http in production: %+v", o)
	}
}

func TestErrorsNameNoAddress(t *testing.T) {
	t.Parallel()
	closed := newReceiver(t, nil)
	closed.Close()
	if o := send(t, local(), closed.URL); o.Error != "no connection" {
		t.Errorf("%+v", o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := notify.New(local()).Send(ctx, message(newReceiver(t, nil).URL)); o.Error != "the attempt was broken off" {
		t.Errorf("%+v", o)
	}
}
