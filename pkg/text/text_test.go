package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"hub.internal/pkg/text"
)

func TestStorable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "brand 한글": "brand 한글", "a\x00b": "a\ufffdb", "a\xff\xfeb": "a\ufffdb", "a\tb\n": "a\tb\n", "\xed\x95": "\ufffd",
	} {
		if got := text.Storable(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " \n": "", "a": "a", " a\r\n\tb  c ": "a b c", "a\u00a0b\u2028c\u0085d\u3000e": "a b c d e", "a\x1b[1mb": "a\x1b[1mb",
	} {
		if got := text.OneLine(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Ada Lovelace": "Ada Lovelace", "홍길동 🙂": "홍길동 🙂",
		"a\x00b\x1bc\x7fd\x9be": "a b c d\ufffde", // a byte alone is no control of C1, but not UTF-8
		"a\u0085b\u009bc":       "a b c",          // controls of C1: the second begins a terminal's sequence
		"a\r\nb\tc":             "a  b c",         // each becomes a space
		"a\u00a0b\u3000c\u2028": "a b c ",         // spaces and ends of lines of Unicode's
		"a\u202eb\u2066c\u200b": "abc",            // marks that turn the direction; a space without width
		"a\ufeffb\U000e0041c":   "abc",            // a byte order mark, a tag
		"\xff\xed\x95":          "\ufffd",         // bytes that are none of UTF-8
		"=1+1\u00ad":            "=1+1",           // a soft hyphen
		"👨\u200d👩":              "👨👩",             // what joins has no shape of its own
		"\ufffd":                "\ufffd",         // which is a symbol
	} {
		got := text.Printable(in)
		if got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
		if text.IsPrintable(in) != (in == want) || !text.IsPrintable(got) {
			t.Errorf("%q is printable: %t; %q is: %t", in, text.IsPrintable(in), got, text.IsPrintable(got))
		}
	}
}

func TestHead(t *testing.T) {
	for _, c := range []struct {
		in    string
		most  int
		chars string
		bytes string
	}{
		{"", 3, "", ""}, {"abc", 3, "abc", "abc"}, {"abcd", 3, "abc", "abc"}, {"abc", 0, "", ""}, {"abc", -1, "", ""}, {"abc", -9, "", ""},
		{"한글로", 2, "한글", ""}, {"한글로", 3, "한글로", "한"}, {"한글로", 5, "한글로", "한"}, {"한글로", 6, "한글로", "한글"},
		{"a한", 1, "a", "a"}, {"a한", 2, "a한", "a"}, {"🙂🙂", 1, "🙂", ""}, {"🙂🙂", 7, "🙂🙂", "🙂"},
		{"\x95\x95\x95\x95\x95\x95", 5, "\x95\x95\x95\x95\x95", "\x95\x95\x95\x95\x95"},
	} {
		if got := text.Head(c.in, c.most); got != c.chars {
			t.Errorf("%q has the first %d characters %q, not %q", c.in, c.most, got, c.chars)
		}
		if got := text.HeadBytes(c.in, c.most); got != c.bytes {
			t.Errorf("%q has in %d bytes %q, not %q", c.in, c.most, got, c.bytes)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"", 1, ""}, {"a", 1, "a"}, {"ab", 1, "…"}, {"abcd", 4, "abcd"}, {"abcde", 4, "abc…"}, {"한글로된", 3, "한글…"}, {"ab cd", 4, "ab…"},
		{"ab ", 3, "ab "},
	} {
		if got := text.Shorten(c.in, c.most); got != c.want {
			t.Errorf("%q in %d characters is %q, not %q", c.in, c.most, got, c.want)
		}
	}
}

func TestShown(t *testing.T) {
	if got := text.Shown("no\u202e such\x1b tool\xff"+strings.Repeat("한", 9), 16); got != "no such  tool\ufffd한…" {
		t.Errorf("%q", got)
	}
}

// TestBounds holds for any text and bound that a cut is a beginning within its bound, and as long as it can be.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, most := rapid.String().Draw(t, "text"), rapid.IntRange(1, 40).Draw(t, "most")
		head, bytes := text.Head(s, most), text.HeadBytes(s, most)
		if !strings.HasPrefix(s, head) || utf8.RuneCountInString(head) != min(most, utf8.RuneCountInString(s)) {
			t.Fatalf("Head: %q", head)
		}
		if !strings.HasPrefix(s, bytes) || len(bytes) > most || !utf8.ValidString(bytes) {
			t.Fatalf("HeadBytes: %q", bytes)
		}
		if _, next := utf8.DecodeRuneInString(s[len(bytes):]); len(bytes) < len(s) && len(bytes)+next <= most {
			t.Fatalf("HeadBytes: %q, and there is room for more", bytes)
		}
		if short := text.Shorten(s, most); utf8.RuneCountInString(short) > most || short != s && !strings.HasSuffix(short, "…") {
			t.Fatalf("Shorten: %q", short)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		s, most := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")), rapid.IntRange(-3, 40).Draw(t, "most")
		if got := text.HeadBytes(s, most); !strings.HasPrefix(s, got) || len(got) > max(most, 0) || len(got) < min(len(s), most)-3 {
			t.Fatalf("%q", got)
		}
		if got := text.Storable(s); !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Fatalf("%q", got)
		}
		if got := text.Printable(s); !text.IsPrintable(got) {
			t.Fatalf("%q", got)
		}
	})
}

func TestOrEmpty(t *testing.T) {
	if none, some := text.OrEmpty(nil), text.OrEmpty(new("한글")); none != "" || some != "한글" {
		t.Errorf("%q %q", none, some)
	}
}
