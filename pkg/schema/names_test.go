package schema_test

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"hub.internal/pkg/schema"
)

// TestNamesAreThereOnce as the decoder means it, which would keep a map for each object: of text that is JSON but for that, wherever the
// object stands, however its names are written, and whether they are few or many.
func TestNamesAreThereOnce(t *testing.T) {
	t.Parallel()
	free, err := schema.Compile(schema.Object(schema.Optional("a", schema.FreeObject("")), schema.Optional("known", schema.Array("",
		schema.Object(schema.Optional("a", schema.FreeObject(""))), schema.Items(0, 100)))))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		input := `{"a":` + anyObject(t, 3) + `,"known":[{"a":` + anyObject(t, 2) + `}]}`
		f, twice := free.Validate(t.Context(), []byte(input)), firstTwice(t, input)
		switch {
		case twice == nil:
			if f != nil {
				t.Fatalf("%v: %s", violations(f), input)
			}
		case f == nil:
			t.Fatalf("%v is not noticed: %s", twice, input)
		default:
			want := schema.Violation{Path: string(twice.JSONPointer), Rule: "json",
				Message: fmt.Sprintf("is not strict JSON at byte %d: %v", twice.ByteOffset, twice.Err)}
			if got := violations(f); len(got) != 1 || got[0] != want {
				t.Fatalf("%v, not %v: %s", got, want, input)
			}
		}
	})
}

// firstTwice is what the decoder says of the first name that is there twice; nil if none is.
func firstTwice(t *rapid.T, input string) (found *jsontext.SyntacticError) {
	dec := jsontext.NewDecoder(strings.NewReader(input))
	for {
		switch _, err := dec.ReadToken(); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &found):
			return found
		case err != nil:
			t.Fatal(err)
		}
	}
}

// anyObject has names of which two are rarely the same, but for the way in which they are written.
func anyObject(t *rapid.T, depth int) string {
	most := rapid.SampledFrom([]int{0, 3, 15, 16, 17, 40, 300}).Draw(t, "members")
	from := rapid.IntRange(0, 1000).Draw(t, "from")
	var b strings.Builder
	for i := range most {
		if i > 0 {
			b.WriteByte(',')
		}
		name := strconv.Itoa(from + i)
		if rapid.IntRange(0, 200).Draw(t, "again") == 0 {
			name = strconv.Itoa(from + i/2)
		}
		if i%7 == 3 { // its first digit as an escape, which is the same name
			name = `\u00` + strconv.FormatInt(int64(name[0]), 16) + name[1:]
		}
		b.WriteString(`"` + name + `":`)
		if depth > 0 && i%20 == 5 {
			b.WriteString(anyObject(t, depth-1))
		} else {
			b.WriteString("1")
		}
	}
	return "{" + b.String() + "}"
}
