package schema_test

import (
	"net/mail"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/schema"
)

func TestFormats(t *testing.T) {
	local, label := strings.Repeat("l", 64), strings.Repeat("d", 63)
	longest := "a@" + label + "." + label + "." + label + "." + strings.Repeat("d", 57) + ".io" // 254 bytes
	if len(longest) != 254 {
		t.Fatal(len(longest))
	}
	for format, corpus := range map[string]map[bool][]string{
		schema.Email: {
			true: {
				"a@b.co", "first.last+tag@sub.example.co.kr", "UPPER@EXAMPLE.COM", "o'neil@example.com", "1@example.com",
				"a_b-c=d!#$%&*/?^`{|}~@example.com",
				"a@xn--3e0b707e.xn--3e0b707e", "a@1.example.com", "a@a-b.example.com", local + "@example.com", longest,
			},
			false: {
				"", " ", "a", "@", "a@", "@example.com", "a@b", "a@example.com.", "a@.example.com", "a@example..com", "a@@example.com",
				"a@b@example.com",
				".a@example.com", "a.@example.com", "a..b@example.com", "a b@example.com", " a@example.com", "a@example.com ", "a@exa mple.com",
				"a@example.com\n",
				"a@example.com\r\nBcc: victim@example.com", "a\r\n@example.com", "a@example.com\x00", "a\x00@example.com", "a\t@example.com",
				"a\x7f@example.com",
				"A <a@example.com>", "<a@example.com>", `"A" <a@example.com>`, "a@example.com (comment)", "a(comment)@example.com",
				`"a b"@example.com`, `"a"@example.com`, `a\@b@example.com`,
				"a@example.com, b@example.com", "a@example.com;b@example.com", "group: a@example.com;", "mailto:a@example.com",
				"=?utf-8?q?a?= <a@example.com>",
				"a@[127.0.0.1]", "a@[IPv6:::1]", "a@127.0.0.1", "a@example.123", "a@-example.com", "a@example-.com", "a@exa_mple.com", "a@example.c-",
				"é@example.com", "a@exämple.com", "a@例え.jp", "用户@example.com", "a\u202e@example.com", "a@example\u3002com",
				"a＠example.com", "a\u200b@example.com",
				local + "l@example.com", "d" + longest, "a@" + label + "d.com", "a@" + strings.Repeat("d.", 126) + "com",
			},
		},
		schema.ISODate: {
			true: {"2026-01-31", "2024-02-29", "2026-01-31T09:00:00Z", "2026-01-31T09:00:00.123456789Z", "2026-01-31T09:00:00+09:00",
				"2026-01-31T23:59:59-12:00", "0001-01-01",
				"2026-01-31T09:00:00", "2026-01-31T09:00:00.250000"},
			false: {
				"", "2026", "2026-1-31", "26-01-31", "2026-02-29", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-32", " 2026-01-31",
				"2026-01-31 ", "2026/01/31", "31-01-2026", "20260131",
				"2026-01-31T", "2026-01-31T09:00", "2026-01-31T9:00:00", "2026-01-31T09:00:00,5", "2026-01-31T24:00:00", "2026-01-31 09:00:00",
				"2026-01-31T9:00:00Z", "2026-01-31T09:00:00,5Z", "2026-01-31T24:00:00Z", "2026-01-31T09:60:00Z",
				"2026-01-31T09:00:60Z", "2026-01-31T09:00:00+0900", "2026-01-31T09:00:00+25:00", "2026-01-31T09:00:00Zjunk", "+2026-01-31",
				"-2026-01-31", "02026-01-31", "２０２６-01-31", "now", "2026-W05", "2026-01-31\n",
			},
		},
	} {
		v, err := schema.Compile(schema.String("", schema.Format(format)))
		if err != nil {
			t.Fatal(err)
		}
		for valid, texts := range corpus {
			for _, text := range texts {
				b, _ := jsonOf(text)
				f := v.Validate(t.Context(), b)
				if (f == nil) != valid {
					t.Errorf("%s %q: %v, want valid %v", format, text, f, valid)
				}
				if f != nil && (len(violations(f)) != 1 || violations(f)[0].Rule != "format") {
					t.Errorf("%s %q: %v", format, text, violations(f))
				}
			}
		}
	}
}

func TestParseISODate(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-01-31":                time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T09:00:00+09:00": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := schema.ParseISODate(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// dotted is a host name as RFC 1123 and RFC 3696 have it.
var dotted = regexp.MustCompile(`^(?i:(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)$`)

// TestEmailAgreesWithTheLibrary holds IsEmail to net/mail: an address that is nothing but itself,
// in ASCII, without a quoted part, at a host with a dot.
func TestEmailAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9._%+-]{0,66}`),
		rapid.StringOfN(rapid.RuneFrom([]rune("aZ09.-_!#$%&'*+/=?^`{|}~@\"()<>[]:;,\\ \t\r\n\x00\x7f한é")), 0, 12, -1),
		rapid.StringMatching(`[a-z0-9-]{1,64}(\.[a-z0-9-]{1,64}){0,4}\.?`),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := part.Draw(t, "local") + rapid.SampledFrom([]string{"@", "@", "@", "", "@@"}).Draw(t, "at") + part.Draw(t, "host")
		a, err := mail.ParseAddress(s)
		at := strings.LastIndexByte(s, '@')
		want := err == nil && a.Address == s && a.Name == "" && len(s) <= 254 && at <= 64 && !strings.Contains(s, `"`) &&
			!strings.ContainsFunc(s, func(r rune) bool { return r > '~' || r <= ' ' }) && dotted.MatchString(s[at+1:])
		if got := schema.IsEmail(s); got != want {
			t.Fatalf("%q: %v, want %v", s, got, want)
		}
	})
}
