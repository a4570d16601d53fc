package text_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"hub.internal/pkg/text"
)

// TestASecretIsMasked: alone, in a list, in a struct, and as the text that a type of its own is made of.
func TestASecretIsMasked(t *testing.T) {
	const clear = "hunter2"
	s := text.Secret(clear)
	named := struct{ text.Secret }{s}
	if s.Reveal() != clear || named.Reveal() != clear {
		t.Errorf("%q, %q", s.Reveal(), named.Reveal())
	}
	for _, v := range []any{s, &s, named, []text.Secret{s}, struct{ K text.Secret }{s}, map[string]any{"k": named}} {
		var out bytes.Buffer
		fmt.Fprintf(&out, "%v %+v %#v %s %q %x %X %d %t ", v, v, v, v, v, v, v, v, v)
		fmt.Fprint(&out, v)
		for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
			slog.New(h).Info("secret", "k", v, "list", []any{v})
		}
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Errorf("%T: %v", v, err)
		}
		shown := out.String()
		if _, isAddress := v.(*text.Secret); !isAddress && strings.Count(shown, "***") < 13 {
			t.Errorf("%T is not shown as ***: %s", v, shown)
		}
		for _, no := range []string{clear, fmt.Sprintf("%x", clear), fmt.Sprintf("%X", clear)} {
			if strings.Contains(shown, no) {
				t.Errorf("%T shows: %s", v, shown)
			}
		}
	}
	if shown := fmt.Sprintf("%v%s", text.Secret(""), struct{ text.Secret }{}); shown != "" {
		t.Errorf("none is shown as %q", shown)
	}
}
