package markup_test

import (
	"testing"
	"time"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/markup/markuptest"
)

// FuzzClean wants what stays to be harmless and to stay, and the same text to become the same.
func FuzzClean(f *testing.F) {
	for _, c := range kept {
		f.Add(c.text)
	}
	for _, text := range []string{
		"<table><b><tr><td>x</b></table>y", "<a href=https://a.example>x<table><td><a href=//b>y",
		"<svg><p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
		"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1&gt;\">",
		"<p style='padding:1px 2px;font:9px/2 a;background:url(x) #fff'>x", "<pre>\n\n x", "\u202e\u200b",
		"<form><p>x<form>y</p></form>", "<select><option><p>x", "<frameset><frame>", "<plaintext>x", "<b><p>x</b>y", "<li>x<ul><li>y",
		"<h1><h2>x", "<nobr>x<nobr>y",
	} {
		f.Add(text)
	}
	p := markup.Mail()
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		clean, removed := p.Clean(text)
		if problem := markuptest.Harm(clean); problem != "" {
			t.Errorf("%s is left\nof   %q\nthat is %q", problem, text, clean)
		}
		if again, more := p.Clean(clean); again != clean || len(more) > 0 {
			t.Errorf("%q\nbecomes %q\nthen    %q\nwithout %+v", text, clean, again, more)
		}
		other, same := p.Clean(text)
		if other != clean || len(same) != len(removed) {
			t.Errorf("%q becomes %q and %q", text, clean, other)
		}
		if took := time.Since(began); took > 30*time.Second+time.Duration(len(text))*100*time.Microsecond {
			t.Errorf("%d bytes in %v", len(text), took)
		}
		plain, _ := markup.Text(text)
		if again, more := markup.Text(plain); again != plain || len(more) > 0 {
			t.Errorf("text %q becomes %q, then %q without %+v", text, plain, again, more)
		}
	})
}
