package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// receiver is an echo whose secret is in a file.
type receiver struct {
	t    *testing.T
	url  string
	file string
}

func newReceiver(t *testing.T) receiver {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	pages, err := newPages(&inbox{secret: fileSecret(file), now: time.Now}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	return receiver{t, server.URL, file}
}

// tell sends a notification that is signed, and answers the status.
func (r receiver) tell(path, id, body string) int {
	r.t.Helper()
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	now := time.Now()
	signature, err := webhook.Sign(id, now, []byte(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", signature)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func (r receiver) get(path string) (int, string) {
	r.t.Helper()
	resp, err := http.Get(r.url + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (r receiver) messages(query string) []message {
	r.t.Helper()
	var out struct{ Messages []message }
	_, body := r.get("/messages" + query)
	if err := json.Unmarshal([]byte(body), &out); err != nil || out.Messages == nil {
		r.t.Fatalf("%v: %s", err, body)
	}
	return out.Messages
}

func about(order string, seq int) string {
	return fmt.Sprintf(`{"type":"payment.order.paid","data":{"code":%q,"status":"PAID","seq":%d}}`, order, seq)
}

func TestWhatArrivesIsShown(t *testing.T) {
	r := newReceiver(t)
	if got := r.messages(""); len(got) != 0 {
		t.Errorf("at first there are %v", got)
	}
	r.tell("/hook", "msg_0", about("po_0", 1)) // before the secret was issued
	if err := os.WriteFile(r.file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := r.tell("/hook", "msg_1", about("po_1", 3)); status != http.StatusNoContent {
		t.Errorf("answered %d", status)
	}
	if status := r.tell("/hook?answer=503", "msg_1", about("po_1", 3)); status != http.StatusServiceUnavailable {
		t.Errorf("answered %d", status)
	}
	if resp, err := http.Post(
		r.url+"/",
		"application/json",
		strings.NewReader("<script>alert(1)</script>"),
	); err != nil ||
		resp.StatusCode != http.StatusNoContent {
		t.Errorf("%v", err)
	}
	all := r.messages("")
	if len(all) != 4 || all[0].Verified || all[0].Problem == "" || !all[1].Verified || !all[1].Again || all[1].Answered != 503 ||
		!all[2].Verified || all[2].Again || all[2].Type != "payment.order.paid" || all[2].Seq != 3 || all[2].Body != about("po_1", 3) ||
		all[3].Verified || !strings.Contains(all[3].Problem, "no secret") {
		t.Errorf("%+v", all)
	}
	if of := r.messages("?order=po_1"); len(of) != 2 {
		t.Errorf("%+v", of)
	}
	for path, want := range map[string][]string{
		"/":                                   {"payment.order.paid", "Signed", "Not verified", "Again", "Answered 503", "po_1"},
		"/?order=po_9":                        {"Nothing about this order"},
		"/message/2":                          {"msg_1", "version 3", "&#34;PAID&#34;"},
		"/message/4":                          {"&lt;script&gt;alert(1)"},
		"/return?code=po_1&status=PAID&c=%3C": {"po_1", "PAID", "c = &lt;"},
		"/return":                             {"No order came along"},
	} {
		status, page := r.get(path)
		for _, text := range want {
			if status != http.StatusOK || !strings.Contains(page, text) || strings.Contains(page, "<script>alert") {
				t.Errorf("%s: %d, lacks %q: %s", path, status, text, page)
			}
		}
	}
	if status, _ := r.get("/message/99"); status != http.StatusNotFound {
		t.Errorf("a message that is not there: %d", status)
	}
}

func TestTheNewestAreKept(t *testing.T) {
	r := newReceiver(t)
	for i := range kept + 5 {
		r.tell("/", fmt.Sprint("msg_", i), about("po_1", i))
	}
	all := r.messages("")
	if len(all) != kept || all[0].Number != kept+5 || all[kept-1].Number != 6 {
		t.Errorf("%d messages, from %d to %d", len(all), all[len(all)-1].Number, all[0].Number)
	}
	resp, err := http.Post(r.url, "text/plain", bytes.NewReader(make([]byte, bodyLimit+1)))
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%v", err)
	}
}

func TestOnlyThisMachineIsListenedTo(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "localhost:0", "example.com:80", "127.0.0.1"} {
		if err := run(
			context.Background(),
			io.Discard,
			addr,
			fileSecret(""),
		); err == nil ||
			!strings.Contains(err.Error(), "this machine alone") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
