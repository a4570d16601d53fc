package hubtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Example runs the body of an Example function with a test, which it has none of its own of. What
// would fail the test panics.
func Example(body func(t testing.TB)) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &example{ctx: ctx}
	defer func() {
		cancel()
		for _, f := range slices.Backward(e.cleanups) {
			f()
		}
	}()
	body(e)
}

// example is as much of a test as helpers use.
type example struct {
	testing.TB // which a type outside of package testing has to embed
	ctx        context.Context
	cleanups   []func()
}

func (e *example) Helper()                         {}
func (e *example) Context() context.Context        { return e.ctx }
func (e *example) Cleanup(f func())                { e.cleanups = append(e.cleanups, f) }
func (e *example) Error(args ...any)               { panic(fmt.Sprint(args...)) }
func (e *example) Errorf(text string, args ...any) { panic(fmt.Sprintf(text, args...)) }
func (e *example) Fatal(args ...any)               { panic(fmt.Sprint(args...)) }
func (e *example) Fatalf(text string, args ...any) { panic(fmt.Sprintf(text, args...)) }
