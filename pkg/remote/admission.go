package remote

import (
	"context"
	"errors"
	"net/http"

	"hub.internal/pkg/admission"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

// enter takes a place among the calls in flight, which lasts until the answer has been read:
// callers who are slow to read theirs fill their own share.
func (c *Client) enter(ctx context.Context, operation string) (*admission.Place, error) {
	place, err := c.admission.Enter(ctx, caller.From(ctx).Account(), operation)
	if errors.Is(err, admission.ErrFull) {
		return nil, fault.Full("The %s service has as much to do as it can. Try again in a second.", c.service)
	}
	return place, err
}

// leave gives the place of a call back that has no answer but err.
func leave(place *admission.Place, err error) {
	if overloaded(err) {
		place.Failed()
	}
	place.Leave()
}

// overloaded tells whether err is what an instance with too much to do answers, or one that was asked and did not answer. A
// refusal says nothing of that, nor does a defect, or an instance that nothing was sent to.
func overloaded(err error) bool {
	var d *unreachable
	if errors.As(err, &d) {
		return !d.unsent && !d.skipped && !errors.Is(err, context.Canceled)
	}
	var f *fault.Error
	return errors.As(err, &f) && (f.Status() > http.StatusInternalServerError || fault.Shed(err))
}
