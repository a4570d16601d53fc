package prose_test

import (
	"testing"

	"hub.internal/pkg/markup/prose"
)

func TestOf(t *testing.T) {
	for fragment, want := range map[string]string{
		"":                              "",
		"Hello":                         "Hello",
		"<p>Hello\n  you</p><p>Bye</p>": "Hello you\n\nBye",
		"a<br>b<hr>c":                   "a\nb\n\n----------\n\nc",
		"<ul><li>a</li><li>b<ol start=3><li>c</li></ol></li></ul>":                            "- a\n- b\n  3. c",
		`<a href="https://hub.example/">Hub</a> <a href="https://x.example">x.example</a>`:    "Hub (https://hub.example/) x.example",
		`<img alt="a  picture" src="https://x.example/a.png"><blockquote>q<br>r</blockquote>`: "[a picture]\n\n> q\n> r",
		"<table><tr><td>a</td><td>b</td></tr><tr><td><p>c</p><p>d</p></td></tr></table>":      "a | b\n\nc\n\nd",
		"<pre>a\n  b</pre>김민지": "a\n  b\n\n김민지",
	} {
		if got := prose.Of(fragment); got != want {
			t.Errorf("%s: %q, want %q", fragment, got, want)
		}
	}
}
