package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTextIsWhatItWas: whatever bytes of UTF-8 the data have, however long they are, the string that stands for them is they.
func TestTextIsWhatItWas(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		for _, c := range []string{`"`, "\\", "\x00", "a", "é"} {
			data := []byte(strings.Repeat(c, n))
			var back string
			if text := escape(
				[]byte(`"`),
				data,
			); json.Unmarshal(append(text, '"'), &back) != nil || back != string(data) ||
				int64(len(text)-1) != escapedLength(data) {
				t.Errorf("%q became %s", data, text)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\"\\\n\t\x00\x1f 0a")))).Draw(t, "text")
		data := []byte(text)
		for range rapid.IntRange(0, 12).Draw(t, "doublings") {
			data = append(data, data...)
		}
		parts := []part{verbatim([]byte(`"`)), {payload: &payload{kept: data}, quoted: true}, verbatim([]byte(`"`))}
		var out bytes.Buffer
		length := lengthOf(parts)
		for _, p := range parts {
			if err := p.write(&out); err != nil {
				t.Fatal(err)
			}
		}
		if length != int64(out.Len()) {
			t.Fatalf("%d bytes, said %d", out.Len(), length)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != string(data) {
			t.Fatalf("%v", err)
		}
	})
}

// BenchmarkText writes an answer of 146 KB and its text.
func BenchmarkText(b *testing.B) {
	data := bytes.Repeat([]byte(`[123,"a name","2026-01-31T09:00:00",null],`), 3_500)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		p := &payload{kept: make([]byte, 0, len(data)), rest: io.NopCloser(bytes.NewReader(data))}
		for _, part := range []part{{payload: p}, {payload: p, quoted: true}} {
			if err := part.write(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// FuzzParse: whatever a body holds, it is messages or is refused.
func FuzzParse(f *testing.F) {
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1]},"_meta":{}}}`,
		`[{},{"method":"ping"}]`, `[`, `{"a":1,"a":2}`, `nul`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		x := &exchange{}
		if x.parse(body) != nil {
			return
		}
		for i, m := range x.messages {
			if given, err := x.given(t.Context(), i); !json.Valid(m.raw) || err == nil && !json.Valid(given) {
				t.Errorf("%q became %q, %q", body, m.raw, given)
			}
		}
	})
}
