package body

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/markup/markuptest"
)

// corpus reads bodies by their names; the head of each file tells its form.
func corpus(t testing.TB, name string) map[string]string {
	t.Helper()
	file, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\f`, "\f", `\0`, "\x00")
	list := map[string]string{}
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, body, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, twice := list[name]; !ok || twice || strings.Contains(body, "\t") {
			t.Fatalf("not a name, a tab and a body, or the name is there twice: %q", line)
		}
		list[name] = unescape.Replace(body)
	}
	return list
}

// read is a body as a reviewer and its recipient get it.
func read(text string) (clean string, removed []markup.Removed, v View) {
	clean, removed = markup.Mail().Clean(text)
	return clean, removed, Read(clean, true)
}

// TestNothingIsTolerated holds every known way to hide or move text, to show another one, or to
// reach out: it is taken out, or told, and what is left of it is harmless.
func TestNothingIsTolerated(t *testing.T) {
	if n := len(corpus(t, "hidden.tsv")); n < 480 {
		t.Errorf("%d ways", n)
	}
	for name, text := range corpus(t, "hidden.tsv") {
		clean, removed, v := read(text)
		if len(removed) == 0 && !v.Flagged() {
			t.Errorf("%s: nothing is told of %s\nwhich is %s", name, text, clean)
		}
		if !strings.Contains(v.Text, "unseen words") && !strings.Contains(fmt.Sprint(removed), "words") {
			t.Errorf("%s: the words are neither there nor among what was taken out: %s\nwithout %+v", name, clean, removed)
		}
		harmless(t, name, text)
	}
	// What is told by the reader, and not taken out, is what an allow-list cannot judge.
	for name, text := range corpus(t, "hidden.tsv") {
		_, removed, v := read(text)
		for _, x := range v.Warnings {
			if len(removed) == 0 && !strings.HasPrefix(x.Reason, "text of color") &&
				!strings.HasPrefix(x.Reason, "all that it says is in pictures") {
				t.Errorf("%s: %+v", name, x)
			}
		}
	}
}

// TestUsualMailsStay holds the usual ways of mails: their text is there, and nothing has to be told.
func TestUsualMailsStay(t *testing.T) {
	for name, text := range corpus(t, "seen.tsv") {
		clean, _, v := read("<p>Dear reader,</p>" + text)
		if bare, _ := markup.Text(text); strings.Contains(bare, ">text<") && !strings.Contains(v.Text, "text") {
			t.Errorf("%s: of %s is left %s", name, text, clean)
		}
		if v.Flagged() || v.Size.Width > PreviewWidth {
			t.Errorf("%s: %+v is told of %s", name, v, clean)
		}
		harmless(t, name, text)
	}
}

// harmless fails when something of a text is left that could do harm, in whatever it stands.
func harmless(t *testing.T, name, text string) {
	t.Helper()
	for _, form := range []string{text, "<div>before " + text + " after</div>", "<table><tr><td>" + text, "<p title='" + text + "'>",
		"<svg>" + text, "<!--" + text, "<pre>" + text, "<a href=https://a.example>" + text} {
		clean, _ := markup.Mail().Clean(form)
		if problem := markuptest.Harm(clean); problem != "" {
			t.Errorf("%s: %s\nbody: %q\nleft: %q", name, problem, form, clean)
		}
		if again, more := markup.Mail().Clean(clean); again != clean || len(more) > 0 {
			t.Errorf("%s: %q\nis left as %q\nthen as    %q", name, form, clean, again)
		}
	}
}

// onlyText is what stays of a vector that is nothing but text, or a link that is told as one.
var onlyText = regexp.MustCompile(`^(?:[^<]|</?(?:p|pre|a)(?: [^>]*)?>)*$`)

func TestNothingIsLeftOfAnAttack(t *testing.T) {
	list := corpus(t, "xss.tsv")
	if len(list) < 400 {
		t.Fatalf("%d vectors", len(list))
	}
	for name, text := range list {
		clean, removed, v := read(text)
		if len(removed) == 0 && !v.Flagged() && !onlyText.MatchString(clean) {
			t.Errorf("%s: nothing is told of %s\nwhich is %s", name, text, clean)
		}
		harmless(t, name, text)
	}
}
