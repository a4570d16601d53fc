package main

// The inbox is in memory: what a local stack was told yesterday matters to nobody.

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// kept is how many messages are remembered.
	kept = 200
	// bodyLimit bounds a notification; those of Hub are smaller.
	bodyLimit = 64 << 10
)

// message is something that arrived.
type message struct {
	// Number counts what arrived, from 1.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	Path   string    `json:"path"`
	// ID, Timestamp and Signature are the headers of Standard Webhooks.
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Signature string `json:"signature"`
	// Verified tells whether the signature holds; Problem says why not, or that it cannot be told.
	Verified bool   `json:"verified"`
	Problem  string `json:"problem,omitempty"`
	// Again tells that the id has arrived before.
	Again bool `json:"again"`
	// Answered is the status that the sender got.
	Answered int    `json:"answered"`
	Type     string `json:"type"`
	Order    string `json:"order"`
	Status   string `json:"status"`
	Seq      int64  `json:"seq"`
	// Body is as it came, byte for byte.
	Body string `json:"body"`
}

// inbox remembers the newest messages.
type inbox struct {
	// secret is asked for each message, because it may be rotated; now is the clock.
	secret func() string
	now    func() time.Time

	mu       sync.Mutex
	number   int
	messages []message // oldest first
}

// take takes a notification. It is answered 204, or what ?answer= of its address asks for: so a receiver that fails can
// be played.
// A body beyond 64 KiB is refused with 413.
func (i *inbox) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		http.Error(w, "the body is too large, or broke off", http.StatusRequestEntityTooLarge)
		return
	}
	m := message{At: i.now().UTC(), Path: r.URL.RequestURI(), ID: r.Header.Get("Webhook-Id"), Timestamp: r.Header.Get("Webhook-Timestamp"),
		Signature: r.Header.Get("Webhook-Signature"), Body: string(body), Answered: http.StatusNoContent}
	if asked, err := strconv.Atoi(r.URL.Query().Get("answer")); err == nil && asked >= 200 && asked <= 599 {
		m.Answered = asked
	}
	m.verify(i.secret(), r.Header)
	m.read()
	i.keep(m)
	w.WriteHeader(m.Answered)
}

// verify checks the signature as a receiver has to, and keeps the reason where it does not hold.
// It goes by the library of Standard Webhooks, as a receiver of one's own would: time and signature.
func (m *message) verify(secret string, header http.Header) {
	if secret == "" {
		m.Problem = "the echo has no secret to verify it with"
		return
	}
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err == nil {
		err = webhook.Verify([]byte(m.Body), header)
	}
	if m.Verified = err == nil; err != nil {
		m.Problem = err.Error()
	}
}

// read takes from the body what lists show.
// A body of another form leaves them empty.
func (m *message) read() {
	var said struct {
		Type string
		Data struct {
			Code, Status string
			Seq          int64
		}
	}
	if json.Unmarshal([]byte(m.Body), &said) == nil {
		m.Type, m.Order, m.Status, m.Seq = said.Type, said.Data.Code, said.Data.Status, said.Data.Seq
	}
}

// keep numbers a message and drops the oldest beyond the bound.
func (i *inbox) keep(m message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	m.Again = m.ID != "" && slices.ContainsFunc(i.messages, func(o message) bool { return o.ID == m.ID })
	i.number++
	m.Number = i.number
	if i.messages = append(i.messages, m); len(i.messages) > kept {
		i.messages = slices.Delete(i.messages, 0, len(i.messages)-kept)
	}
}

// newest returns those of an order, or all, newest first.
func (i *inbox) newest(order string) []message {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := []message{}
	for _, m := range slices.Backward(i.messages) {
		if order == "" || m.Order == order {
			out = append(out, m)
		}
	}
	return out
}

// find returns a message by its number.
func (i *inbox) find(number string) (message, bool) {
	n, err := strconv.Atoi(number)
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.IndexFunc(i.messages, func(m message) bool { return err == nil && m.Number == n })
	if at < 0 {
		return message{}, false
	}
	return i.messages[at], true
}
