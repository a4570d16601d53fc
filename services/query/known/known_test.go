package known_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hub.internal/services/query/known"
)

func TestValues(t *testing.T) {
	now := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	values := known.New[int](func() time.Time { return now })
	reads := 0
	var fails error
	get := func(age time.Duration) (int, bool) {
		ctx, leave := context.WithCancel(t.Context())
		leave() // who leaves reads for the others
		return values.Get(ctx, "a", age, func(ctx context.Context) (int, error) {
			reads++
			return reads, errors.Join(fails, ctx.Err())
		})
	}
	expect := func(what string, value int, good bool, wantValue int, wantGood bool) {
		t.Helper()
		if value != wantValue || good != wantGood {
			t.Errorf("%s: %d, %v, want %d, %v", what, value, good, wantValue, wantGood)
		}
	}
	for step, c := range []struct {
		after time.Duration
		fails error
		value int
		good  bool
	}{
		{0, nil, 1, true}, {time.Hour - time.Second, nil, 1, true}, {time.Second, nil, 2, true},
		{time.Hour, errors.New("away"), 2, false}, {known.Retry - time.Second, nil, 2, false}, {time.Second, nil, 4, true},
	} {
		now, fails = now.Add(c.after), c.fails
		value, good := get(time.Hour)
		expect(string(rune('a'+step)), value, good, c.value, c.good)
	}
}
