package notify_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"hub.internal/services/payments"
	"hub.internal/services/payments/notify"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// onThisMachine lets the receivers of tests through.
var onThisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// receiver remembers what it was sent, and answers as the test says.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	received []*http.Request
	bodies   [][]byte
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(r.handler(answer))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) handler(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.received, r.bodies = append(r.received, request), append(r.bodies, body)
		r.mu.Unlock()
		if answer != nil {
			answer(w, request)
		}
	})
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.received)
}

func (r *receiver) port() string { return r.URL[strings.LastIndexByte(r.URL, ':'):] }

func message(url string) payments.Delivery {
	return payments.Delivery{
		ID:      "msg_01JZ8Q6V7R3W9K2M4N5P6Q7R8S",
		URL:     url,
		Body:    []byte(`{"type":"payment.order.paid"}`),
		Secrets: []string{secret},
	}
}

func send(t *testing.T, c notify.Config, url string) payments.Attempt {
	t.Helper()
	return notify.New(c).Send(t.Context(), message(url))
}

// local is the configuration for a receiver of a test.
func local() notify.Config { return notify.Config{Allow: onThisMachine, AllowHTTP: true} }

// resolver resolves every name, the n-th question for it as answer says.
func resolver(t *testing.T, answer func(n int) []netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { _ = conn.Close() })
	wg.Go(func() {
		asked, buffer := 0, make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var question dnsmessage.Message
			if err := question.Unpack(buffer[:n]); err != nil {
				continue
			}
			reply := dnsmessage.Message{
				Header:    dnsmessage.Header{ID: question.ID, Response: true, Authoritative: true},
				Questions: question.Questions,
			}
			if q := question.Questions[0]; q.Type == dnsmessage.TypeA {
				asked++
				for _, addr := range answer(asked) {
					reply.Answers = append(
						reply.Answers,
						dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
							Body: &dnsmessage.AResource{A: addr.As4()}},
					)
				}
			}
			packed, err := reply.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.WriteTo(packed, from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}
