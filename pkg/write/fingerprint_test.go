package write_test

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"hub.internal/pkg/write"
)

func fingerprintOf(t testing.TB, input string) [sha256.Size]byte {
	t.Helper()
	sum, err := write.Fingerprint([]byte(input))
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
		{`[]`, ` [ ] `}, {`{}`, "{\n}"}, {`{"a":[]}`, `{"a":[ ]}`}, {`"x"`, ` "\u0078"`},
	} {
		if fingerprintOf(t, same[0]) != fingerprintOf(t, same[1]) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{`{"a":1}`, `{"a":2}`}, {`{"a":1}`, `{"a":"1"}`}, {`{"a":[1,2]}`, `{"a":[2,1]}`}, {`{"a":null}`, `{}`},
		{`{"id":9007199254740993}`, `{"id":9007199254740992}`},
		{`{"a":["x","y"]}`, `{"a":["x,y"]}`}, {`{"a":[[1],[2]]}`, `{"a":[[1,2]]}`}, {`{"a":[]}`, `{"a":[[]]}`},
	} {
		if fingerprintOf(t, other[0]) == fingerprintOf(t, other[1]) {
			t.Errorf("%s and %s are taken for the same", other[0], other[1])
		}
	}
	for _, broken := range []string{``, `{`, `{"a":1}x`, `{"a":1,"a":2}`, `{"a":[1,]}`, "\"\xff\""} {
		if _, err := write.Fingerprint([]byte(broken)); err == nil {
			t.Errorf("%q has a fingerprint", broken)
		}
	}
}

// TestFingerprintIsRFC8785 compares with the whole value made canonical at once, on integers that doubles can hold.
func TestFingerprintIsRFC8785(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab\"\\/\n\u0001é€\u2028😀\ufb33<&")))
	leaf := rapid.OneOf(
		rapid.Map(rapid.Int64Range(-1<<53+1, 1<<53-1), func(n int64) any { return n }), rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(text, func(s string) any { return s }), rapid.Just(any(nil)), rapid.Map(rapid.Bool(), func(b bool) any { return b }))
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
		got, err := write.Fingerprint(b)
		if err != nil || got != sha256.Sum256(canonical) {
			t.Fatalf("%s: %v; canonical %s", b, err, canonical)
		}
	})
}
