// Package hook receives what Hub tells an app, as the app's own receiver does: it verifies the signature on the bytes as they came,
// and can hand them on. It refuses to act on what a message says.
package hook

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// maxMessage bounds a message, in bytes; Hub's are a few KiB.
	maxMessage = 1 << 20
	// minSecret is the least that Standard Webhooks takes for a key, in bytes.
	minSecret = 24
	// forwardTimeout is what Hub gives an attempt.
	forwardTimeout = 15 * time.Second
)

// Receiver answers messages: 204 for one that is Hub's, 401 for any other, and what it was forwarded to where that is set.
type Receiver struct {
	// Tell is called with each message, one at a time.
	Tell func(Message)
	// Forward is who gets the bytes and the headers of what was verified; empty for nobody.
	Forward string

	verifier *standardwebhooks.Webhook
	client   *http.Client
	mu       sync.Mutex
	seen     map[string]bool
}

// Message is what came.
type Message struct {
	// ID is the header webhook-id; Type, Code, Status and Seq are of the body, which has to be Hub's.
	ID, Type, Code, Status string
	Seq                    int64
	// Again tells that it has come before.
	Again bool
	// Refused says why it was not believed; empty for what was verified. Answer is the status that it was answered with.
	Refused string
	Answer  int
}

// New is a receiver for the messages of the app with this secret, whsec_….
func New(secret string) (*Receiver, error) {
	// The library takes any key, an empty one too.
	encoded, isOne := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !isOne || err != nil || len(key) < minSecret {
		return nil, errors.New("it is no secret of notifications: whsec_ and Base64 of 24 bytes or more")
	}
	verifier, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, err
	}
	// What is forwarded to answers for itself: no redirect is followed.
	return &Receiver{verifier: verifier, seen: map[string]bool{}, client: &http.Client{Timeout: forwardTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// ServeHTTP implements http.Handler.
func (h *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	m := Message{ID: r.Header.Get(standardwebhooks.HeaderWebhookID), Answer: http.StatusNoContent}
	switch {
	case r.Method != http.MethodPost:
		m.Refused, m.Answer = "it is a "+r.Method+", and no message", http.StatusMethodNotAllowed
	case err != nil:
		m.Refused, m.Answer = "it broke off, or is too long", http.StatusBadRequest
	default:
		if err := h.verifier.Verify(body, r.Header); err != nil {
			m.Refused, m.Answer = cmp.Or(errors.Unwrap(err), err).Error(), http.StatusUnauthorized
		}
	}
	if m.Refused == "" {
		m.read(body)
		if h.Forward != "" {
			m.Answer = h.forward(r, body)
		}
	}
	h.mu.Lock()
	m.Again = m.Refused == "" && h.seen[m.ID]
	h.seen[m.ID] = h.seen[m.ID] || m.Refused == ""
	h.Tell(m)
	h.mu.Unlock()
	w.WriteHeader(m.Answer)
}

// read takes what is told from the body; of what has another form nothing is told.
func (m *Message) read(body []byte) {
	var of struct {
		Type string
		Data struct {
			Code, Status string
			Seq          int64
		}
	}
	if json.Unmarshal(body, &of) == nil {
		m.Type, m.Code, m.Status, m.Seq = of.Type, of.Data.Code, of.Data.Status, of.Data.Seq
	}
}

// forward hands a message on, and returns the status that it was answered with; 502 for none.
func (h *Receiver) forward(r *http.Request, body []byte) int {
	to, err := http.NewRequestWithContext(r.Context(), http.MethodPost, h.Forward, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway
	}
	for _, name := range []string{"Content-Type", "User-Agent", standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp,
		standardwebhooks.HeaderWebhookSignature} {
		to.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
	}
	resp, err := h.client.Do(to)
	if err != nil {
		return http.StatusBadGateway
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxMessage)) // so that the connection can be used again
	return resp.StatusCode
}
