package gateway

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
)

const (
	// maxVisitors is how many requests of people who are not signed in may be under way at once, and
	// maxVisitorsEach how many of one network. They share the way to a service with the keys and sessions
	// that it verifies, which has HUB_SERVICE_CONCURRENCY places (256).
	maxVisitors, maxVisitorsEach = 128, 32
	// maxVisitorForm bounds what somebody who is not signed in may send: a log-in, an unsubscription.
	maxVisitorForm = 64 << 10
)

// visitors counts the requests of people who are not signed in. The zero value counts none yet.
type visitors struct {
	mu        sync.Mutex
	all       int
	ofNetwork map[string]int
}

// enter takes a place until leave, or refuses with E_RATE_LIMIT.
func (v *visitors) enter(address string) (leave func(), err error) {
	network := caller.Network(address)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all >= maxVisitors || v.ofNetwork[network] >= maxVisitorsEach {
		return nil, fault.New(fault.RateLimit, "Too many people are at this page at this moment. Try again in a few seconds.").
			After(2 * time.Second)
	}
	if v.ofNetwork == nil {
		v.ofNetwork = map[string]int{}
	}
	v.all++
	v.ofNetwork[network]++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.all--
		if v.ofNetwork[network]--; v.ofNetwork[network] == 0 {
			delete(v.ofNetwork, network)
		}
	}, nil
}

// whole reads what a visitor sends before a place is taken for it: who sends it slowly holds nothing but
// their own connection.
func whole(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b, err := tool.ReadBody(r.Body, r.ContentLength, maxVisitorForm)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
	return nil
}
