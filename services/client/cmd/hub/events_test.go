package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hub.internal/services/client/output"
)

const notifySecret = "whsec_Q0FOQVJZLXdlYmhvb2stc2VjcmV0LTAwMDAwMDE="

// lines is a stream that a test reads while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
	// came has room for each write.
	came chan struct{}
}

func newLines() *lines { return &lines{came: make(chan struct{}, 100)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.came <- struct{}{} }()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// listening starts hub pay listen, and returns where it listens, what it prints, and its end.
func listening(t *testing.T, args ...string) (at string, out, said *lines, stop context.CancelFunc, ended chan int) {
	t.Helper()
	out, said, ended = newLines(), newLines(), make(chan int, 1)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	environ := map[string]string{"HUB_WEBHOOK_SECRET": notifySecret}
	go func() {
		ended <- run(ctx, append([]string{"pay", "listen", "--addr", "127.0.0.1:0"}, args...), terminal{
			getenv: func(name string) string { return environ[name] }, in: strings.NewReader(""), out: out, err: said,
			screen: output.Screen{}, now: time.Now})
	}()
	<-said.came
	_, at, found := strings.Cut(said.String(), "listening at ")
	if at, _, _ = strings.Cut(at, " "); !found {
		t.Fatal(said.String())
	}
	return at, out, said, stop, ended
}

// tell sends a message as Hub does, and returns the status of the answer.
func tell(t *testing.T, at, id, secret, body string) int {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := signer.Sign(id, now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	r.Header.Set("webhook-signature", signature)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

const message = `{"type":"payment.order.paid","timestamp":"2026-01-01T00:00:00.000Z","data":{"code":"po_1","status":"PAID","seq":3}}`

// TestListenVerifiesAndTells: what is Hub's is printed, what is not is refused, and Ctrl-C is a good end.
func TestListenVerifiesAndTells(t *testing.T) {
	t.Parallel()
	at, out, said, stop, ended := listening(t)
	for id, want := range map[string]int{"msg_1": 204, "evil\x1b": 401} {
		secret := notifySecret
		if want == 401 {
			secret, id = "whsec_YW5vdGhlciBzZWNyZXQgb2Ygc29tZWJvZHk=", "msg_evil"
		}
		if got := tell(t, at, id, secret, message); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
	if got := tell(t, at, "msg_1", notifySecret, message); got != 204 {
		t.Errorf("again: %d", got)
	}
	resp, err := http.Get(at)
	if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v %v", resp, err)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("it ended with %d", code)
	}
	told := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(told) != 2 || !strings.Contains(told[0], "  payment.order.paid  po_1  PAID  3  msg_1") || !strings.HasSuffix(told[1], "  again") {
		t.Errorf("%q", told)
	}
	if !strings.Contains(said.String(), `refused: no matching signature found (webhook-id "msg_evil", answered 401)`) {
		t.Errorf("%s", said)
	}
}

// TestListenForwards: the same bytes and headers, and the receiver's own answer.
func TestListenForwards(t *testing.T) {
	t.Parallel()
	status := http.StatusTeapot
	var got []byte
	var headers http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		headers = r.Header
		w.WriteHeader(status)
	}))
	at, out, _, _, ended := listening(t, "--forward", receiver.URL, "--events", "2")
	if answer := tell(t, at, "msg_1", notifySecret, message); answer != status || string(got) != message {
		t.Errorf("%d %s", answer, got)
	}
	verifier, err := standardwebhooks.NewWebhook(notifySecret)
	if err != nil || verifier.Verify(got, headers) != nil {
		t.Errorf("what was forwarded does not verify: %v", headers)
	}
	receiver.Close()
	if answer := tell(t, at, "msg_2", notifySecret, message); answer != http.StatusBadGateway {
		t.Errorf("%d", answer)
	}
	if code := <-ended; code != 0 || !strings.Contains(out.String(), "forwarded: 418") || !strings.Contains(out.String(), "forwarded: 502") {
		t.Errorf("%d %s", code, out)
	}
}

// provider is a simulator that takes what its control API has, and Hub at once.
type provider struct {
	mu     sync.Mutex
	did    []string
	status string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	p.did = append(p.did, strings.TrimSpace(r.Method+" "+strings.ReplaceAll(r.URL.Path, code, "CODE")+" "+string(body)))
	switch {
	case !strings.HasPrefix(r.URL.Path, "/_control/"):
		_, _ = fmt.Fprintf(w, `{"ok":true,"data":{"order":{"code":%q,"payMethod":"vbank","amount":11000,"status":%q}}}`, code, p.status)
	case strings.HasSuffix(r.URL.Path, "/fail"):
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "the order does not wait for a payer"})
	default:
		_, _ = io.WriteString(w, "{}")
	}
}

func TestTriggerTakesItsSteps(t *testing.T) {
	t.Parallel()
	const at = "/v1/pay/orders"
	for args, want := range map[string][]string{
		"paid": {`POST ` + at + ` {"amount":11000,"orderName":"hub pay trigger paid","payMethod":"vbank",` +
			`"payment_notify_url":"http://echo/hook"}`,
			`POST /_control/deposit {"amount":11000,"orderId":"` + code + `"}`, `POST ` + at + `/CODE/reconcile {}`},
		"canceled " + code: {`GET ` + at + `/CODE`, `POST ` + at + `/CODE/cancel {}`},
		"attention " + code: {`GET ` + at + `/CODE`, `POST /_control/deposit {"amount":11001,"orderId":"` + code + `"}`,
			`POST ` + at + `/CODE/reconcile {}`},
		"reversed " + code: {`GET ` + at + `/CODE`, `POST /_control/deposit {"amount":11000,"orderId":"` + code + `"}`,
			`POST ` + at + `/CODE/reconcile {}`, `POST /_control/reverse {"orderId":"` + code + `"}`, `POST ` + at + `/CODE/reconcile {}`},
	} {
		p := &provider{status: "AWAITING_DEPOSIT"}
		server := httptest.NewServer(p)
		t.Cleanup(server.Close)
		environ := map[string]string{"HUB_URL": server.URL, "HUB_SERVICE_CODE": "shop", "HUB_SERVICE_SECRET": serviceSecret,
			"HUB_LINKED_USER": "kim", "HUB_PGSIM_URL": server.URL, "HUB_ECHO_URL": "http://echo"}
		s := shellOf(t, environ).run(append([]string{"pay", "trigger", "--print", "order.code"}, strings.Fields(args)...)...)
		if got := strings.Join(p.did, "\n"); s.code != 0 || got != strings.Join(want, "\n") || s.out != code+"\n" {
			t.Errorf("%s: %d %s%s\n%s", args, s.code, s.out, s.err, got)
		}
		for args, want := range map[string]string{"failed " + code: "does not fail: the order does not wait for a payer",
			"nothing": "there are issued, paid, failed", "paid po_1": `"po_1" is not the code of an order`} {
			if s.run(append([]string{"pay", "trigger"}, strings.Fields(args)...)...); s.code != exitUsage || !strings.Contains(s.err, want) {
				t.Errorf("%s: %d %s", args, s.code, s.err)
			}
		}
		s.environ["HUB_PGSIM_URL"] = "http://127.0.0.1:1"
		if s.run("pay", "trigger", "paid"); s.code != exitUnavailable || !strings.Contains(s.err, "HUB_PGSIM_URL is http://127.0.0.1:1") {
			t.Errorf("%d %s", s.code, s.err)
		}
		s.environ["HUB_PGSIM_URL"] = ""
		if s.run("pay", "trigger", "paid"); s.code != exitUsage || !strings.Contains(s.err, "HUB_PGSIM_URL is not set") {
			t.Errorf("%d %s", s.code, s.err)
		}
	}
	s := shellOf(t, nil)
	if s.run("pay", "listen"); s.code != exitUsage || !strings.Contains(s.err, "HUB_WEBHOOK_SECRET: it is no secret") {
		t.Errorf("%d %s", s.code, s.err)
	}
	if s.run("pay", "listen", "--forward", "here"); s.code != exitUsage || !strings.Contains(s.err, "--forward") {
		t.Errorf("%d %s", s.code, s.err)
	}
}
