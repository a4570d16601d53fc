package gateway

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/quota"
)

const (
	// maxVisitors is how many requests of people who are not signed in may be under way at once, and half of it
	// those of one network.
	maxVisitors = 128
	// maxVisitorForm bounds what somebody who is not signed in may send: a log-in, an unsubscription.
	maxVisitorForm = 64 << 10
)

// NewVisitors is what people who are not signed in share.
func NewVisitors() *quota.Quota { return quota.New(maxVisitors) }

// admit takes a place for a visitor's request until leave, or refuses with E_RATE_LIMIT. What they send is read
// before: who sends it slowly holds nothing but their own connection.
func (k *Console) admit(v *visit) (leave func(), err error) {
	if r := v.r; r.Body != nil && r.Body != http.NoBody {
		form, err := hop.ReadBody(r.Context(), r.Body, r.ContentLength, maxVisitorForm)
		if err != nil {
			return nil, err
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(form)), int64(len(form)), nil
	}
	place := k.Visitors.Open(caller.Network(v.Address))
	if !place.TryTake(1) {
		place.Close()
		return nil, fault.New(fault.RateLimit, "Too many people are at this page at this moment. Try again in a few seconds.").
			After(2 * time.Second)
	}
	return place.Close, nil
}
