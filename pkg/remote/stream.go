package remote

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// errStalled ends an answer that does not go on.
var errStalled = errors.New("the instance stopped in the middle of its answer")

// stream is an exchange whose answer is read by somebody else, as slowly as they can: the
// deadline of the call is for the answer's beginning, and what follows has to make progress.
type stream struct {
	begun  atomic.Bool
	cancel context.CancelCauseFunc
}

// newStream returns a context that tells asked's deadline and ends as asked does, but for that
// deadline once the answer has begun; end has to be called when the exchange is over.
func newStream(asked context.Context) (_ context.Context, s *stream, end func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(asked))
	s = &stream{cancel: cancel}
	leave := context.AfterFunc(asked, func() {
		if !s.begun.Load() || !errors.Is(asked.Err(), context.DeadlineExceeded) {
			cancel(asked.Err())
		}
	})
	return streamContext{ctx, asked}, s, func() { leave(); cancel(nil) }
}

// streamContext is a context that tells the deadline of another.
type streamContext struct {
	context.Context
	asked context.Context
}

func (d streamContext) Deadline() (time.Time, bool) { return d.asked.Deadline() }

// bodyOf is the body of an answer that has begun; it is body itself where nothing streams.
func (s *stream) bodyOf(body io.ReadCloser, stall time.Duration) io.ReadCloser {
	if s == nil {
		return body
	}
	s.begun.Store(true)
	late := time.AfterFunc(stall, func() { s.cancel(errStalled) })
	late.Stop()
	return &stallingBody{body, late, stall}
}

// stallingBody is a body whose bytes are waited for only while it is read.
type stallingBody struct {
	io.ReadCloser
	late  *time.Timer
	stall time.Duration
}

func (s *stallingBody) Read(b []byte) (int, error) {
	s.late.Reset(s.stall)
	defer s.late.Stop()
	return s.ReadCloser.Read(b)
}
