package text_test

import (
	"testing"

	"hub.internal/pkg/text"
)

func TestFirstSentence(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "One": "One", "One. Two. Three.": "One.", "WITH ... SELECT is one. More": "WITH ... SELECT is one.", "v1.2 is. It": "v1.2 is.",
	} {
		if got := text.FirstSentence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
