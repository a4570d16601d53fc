package schema_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hub.internal/pkg/schema"
)

// TestWhatCanMeanOneThing: it is read as the schema has it, where the validator is lenient and nowhere else.
func TestWhatCanMeanOneThing(t *testing.T) {
	t.Parallel()
	strict, lenient := lookedBinding(), lookedBinding()
	lenient.Lenient()
	for input, want := range map[string]string{
		`{"segmentId":7}`:                                                        `{"segmentId":"7"}`,
		`{"segmentId":7.0}`:                                                      `{"segmentId":"7"}`,
		`{"segmentId":"1","limit":"20"}`:                                         `{"segmentId":"1","limit":20}`,
		`{"segmentId":"1","categoryId":"-5"}`:                                    `{"segmentId":"1","categoryId":-5}`,
		`{"segmentId":"1","wanted":"true"}`:                                      `{"segmentId":"1","wanted":true}`,
		`{"segmentId":"1","wanted":"False"}`:                                     `{"segmentId":"1","wanted":false}`,
		`{"segmentId":"1","kind":"KO"}`:                                          `{"segmentId":"1","kind":"ko"}`,
		`{"segmentId":"1","kind":"active"}`:                                      `{"segmentId":"1","kind":"ACTIVE"}`,
		`{"segmentId":"1","codes":"1209"}`:                                       `{"segmentId":"1","codes":["1209"]}`,
		`{"segmentId":"1","codes":1209}`:                                         `{"segmentId":"1","codes":["1209"]}`,
		`{"segmentId":"1","codes":[1209, "1210"]}`:                               `{"segmentId":"1","codes":["1209", "1210"]}`,
		`{"segmentId":"1","ids":"12"}`:                                           `{"segmentId":"1","ids":[12]}`,
		`{"keyword":null,"segmentId":"1"}`:                                       `{"segmentId":"1"}`,
		`{"segmentId":"1", "keyword" : null}`:                                    `{"segmentId":"1"}`,
		`{ "limit":null, "codes":null ,"segmentId":1}`:                           `{"segmentId":"1"}`,
		`{"limit":null,"segmentId":1,"codes":null,"kind":null,"ids":[]}`:         `{"segmentId":"1","ids":[]}`,
		`{"segmentId":"1","rows":[{"id":"3","name":null},{"name":null,"id":4}]}`: `{"segmentId":"1","rows":[{"id":3},{"id":4}]}`,
	} {
		if strict.Validate(t.Context(), []byte(input)) == nil {
			t.Errorf("%s is taken where nobody has said so", input)
		}
		got, f := lenient.Mended(t.Context(), []byte(input))
		if f != nil || string(got) != want {
			t.Errorf("%s\n got %s %v\nwant %s", input, got, f, want)
		}
		in, f := lenient.Decode(t.Context(), []byte(input))
		plain, _ := strict.Decode(t.Context(), []byte(want))
		if a, b := fmt.Sprintf("%+v", in.Codes), fmt.Sprintf("%+v", plain.Codes); f != nil || a != b || in.Limit != plain.Limit {
			t.Errorf("%s: %+v %v, want %+v", input, in, f, plain)
		}
	}
	for _, input := range []string{
		`{"segmentId":null}`, `{"segmentId":7.5}`, `{"segmentId":99999999999999999999}`, `{"segmentId":true}`, `{"segmentId":"1","limit":"201"}`,
		`{"segmentId":"1","limit":"012"}`, `{"segmentId":"1","limit":" 12"}`, `{"segmentId":"1","limit":"1,000"}`,
		`{"segmentId":"1","limit":"1e2"}`,
		`{"segmentId":"1","limit":true}`, `{"segmentId":"1","wanted":"yes"}`, `{"segmentId":"1","wanted":1}`, `{"segmentId":"1","kind":"KOR"}`,
		`{"segmentId":"1","codes":"1209,1210"}`, `{"segmentId":"1","codes":""}`, `{"segmentId":"1","codes":[null]}`,
		`{"segmentId":"1","ids":"twelve"}`,
		`{"segmentId":"1","since":20261126}`, `{"segmentId":"1","rows":{"id":1}}`, `{"segmentId":"1","none":null}`, `null`, `"{}"`,
	} {
		if got, f := lenient.Mended(t.Context(), []byte(input)); f == nil {
			t.Errorf("%s is taken as %s", input, got)
		}
	}
}

// TestMendedIsValid: whatever a lenient validator takes is, as it reads it, what a strict one takes; and what a strict one takes is
// read as it stands.
func TestMendedIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySchema(t, 3)
		strict, err := schema.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		lenient, _ := schema.Compile(s)
		lenient.Lenient()
		for range 10 {
			text := []byte(textFor(t, s, 3))
			got, f := lenient.Mended(t.Context(), text)
			switch plain := strict.Validate(t.Context(), text); {
			case plain == nil && (f != nil || !bytes.Equal(got, text)):
				t.Fatalf("%s is read as %s: %v", text, got, f)
			case f == nil:
				if f := strict.Validate(t.Context(), got); f != nil {
					t.Fatalf("%s is read as %s: %v", text, got, f)
				}
			}
		}
	})
}

// TestMendsAreBounded: what a body of nothing but nulls costs has a bound.
func TestMendsAreBounded(t *testing.T) {
	t.Parallel()
	b := lookedBinding()
	b.Bound(64 << 20)
	b.Lenient()
	rows := func(n int) []byte {
		return []byte(`{"segmentId":"1","rows":[` + strings.TrimSuffix(strings.Repeat(`{"id":1,"name":null},`, n), ",") + `]}`)
	}
	if _, f := b.Decode(t.Context(), rows(100_000)); f != nil {
		t.Error(f)
	}
	if f := b.Validate(t.Context(), rows(100_001)); f == nil || !strings.HasPrefix(f.Message, "/rows/100000/name must be a string, not null") {
		t.Error(f)
	}
}
