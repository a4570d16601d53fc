package write_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"hub.internal/pkg/write"
)

func fingerprintOf(t testing.TB, input string) [sha256.Size]byte {
	t.Helper()
	sum, err := write.Fingerprint(t.Context(), []byte(input))
	if err != nil {
		t.Fatalf("%s: %v", input, err)
	}
	return sum
}

func TestFingerprintTellsInputsApart(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{`{"a":1,"b":[1,2]}`, ` { "b" : [ 1 , 2.0 ] , "a" : 1e0 } `},
		{`{"a":{"x":1,"y":"é"}}`, `{"a":{"y":"\u00e9","x":1}}`},
		{`{"a":[{"x":1,"y":2}]}`, `{"a":[{"y":2,"x":1}]}`},
		{`{"é":1,"a":"\/"}`, `{"a":"/","\u00e9":1}`},
		{`{"id":9007199254740993.0}`, `{"id":9007199254740993}`}, {`{"id":-900719925474099.3e1}`, `{"id":-9007199254740993}`},
		{`{"id":1e20}`, `{"id":100000000000000000000}`}, {`{"id":-0.0}`, `{"id":0}`}, {`{"id":1.50}`, `{"id":15e-1}`},
		{`[]`, ` [ ] `}, {`{}`, "{\n}"}, {`{"a":[]}`, `{"a":[ ]}`}, {`"x"`, ` "\u0078"`},
	} {
		if fingerprintOf(t, same[0]) != fingerprintOf(t, same[1]) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{`{"a":1}`, `{"a":2}`}, {`{"a":1}`, `{"a":"1"}`}, {`{"a":[1,2]}`, `{"a":[2,1]}`}, {`{"a":null}`, `{}`},
		{`{"id":9007199254740993}`, `{"id":9007199254740992}`}, {`{"id":9007199254740993.0}`, `{"id":9007199254740992}`},
		{`{"a":["x","y"]}`, `{"a":["x,y"]}`}, {`{"a":[[1],[2]]}`, `{"a":[[1,2]]}`}, {`{"a":[]}`, `{"a":[[]]}`},
	} {
		if fingerprintOf(t, other[0]) == fingerprintOf(t, other[1]) {
			t.Errorf("%s and %s are taken for the same", other[0], other[1])
		}
	}
	for _, broken := range []string{``, `{`, `{"a":1}x`, `{"a":1,"a":2}`, `{"b":{"a":1,"\u0061":2}}`, `{"a":[1,]}`, "\"\xff\""} {
		if _, err := write.Fingerprint(t.Context(), []byte(broken)); err == nil {
			t.Errorf("%q has a fingerprint", broken)
		}
	}
}

// TestFingerprintIsRFC8785 compares with the whole value made canonical at once, on integers that doubles can hold.
func TestFingerprintIsRFC8785(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab\"\\/\n\u0001é€\u2028😀\ufb33<&")))
	leaf := rapid.OneOf(
		rapid.Map(
			rapid.Int64Range(-1<<53+1, 1<<53-1),
			func(n int64) any { return n },
		),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(text, func(s string) any { return s }),
		rapid.Just(any(nil)),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)
	value := leaf
	for range 3 {
		inner := value
		value = rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 4), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		b, err := json.Marshal(value.Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		canonical := jsontext.Value(append([]byte(nil), b...))
		if err := canonical.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		got, err := write.Fingerprint(t.Context(), b)
		if err != nil || got != sha256.Sum256(canonical) {
			t.Fatalf("%s: %v; canonical %s", b, err, canonical)
		}
	})
}

// endsAfter is a context that ends when it has been asked so often whether it has.
type endsAfter struct {
	context.Context
	asked, after int
}

func (c *endsAfter) Err() error {
	if c.asked++; c.asked > c.after {
		return context.Canceled
	}
	return nil
}

// TestFingerprintEndsWithItsContext: one element of a list may be the whole body.
func TestFingerprintEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{
		"a list":           `{"a":[` + strings.Repeat("1,", 50_000) + `1]}`,
		"an element of it": `{"a":[[` + strings.Repeat("1,", 50_000) + `1]]}`,
		"no list":          `{"a":{"b":[` + strings.Repeat("1,", 50_000) + `1]}}`,
	} {
		ctx := &endsAfter{Context: t.Context(), after: 5}
		if _, err := write.Fingerprint(ctx, []byte(input)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v after %d looks", name, err, ctx.asked)
		}
	}
}

// TestFingerprintTakesAFewTimesTheBody, whatever it is made of: within the bounds of an input.
func TestFingerprintTakesAFewTimesTheBody(t *testing.T) {
	members := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"k` + strconv.Itoa(n-i) + `":` + value + `,`)
		}
		return `{` + b.String() + `"a":1}`
	}
	for name, input := range map[string]string{
		"members":  `{"a":[` + members(20, members(9_000, "1")) + `]}`,
		"lists":    `{"a":[[` + strings.Repeat("[],", 200_000) + `[]]]}`,
		"numbers":  `{"a":[[` + strings.Repeat("1,", 200_000) + `1]]}`,
		"depth":    `{"a":[` + strings.Repeat(`{"b":`, 60) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat(`,"a":1}`, 60) + `]}`,
		"one text": `{"a":[{"b":"` + strings.Repeat("x", 4<<20) + `"}]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := write.Fingerprint(t.Context(), []byte(input)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > uint64(10*len(input)) {
			t.Errorf("%s: %d KiB were made of %d KiB", name, made>>10, len(input)>>10)
		}
	}
}
