// Package lookalike finds what looks like a placeholder of another language than a draft's: {name}, [First Name], ${brand},
// *|FNAME|*. Such a text is sent as it stands, so that its reader may read "Dear {name}". It guesses, for a warning; nothing is
// refused by it.
package lookalike

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hub.internal/pkg/schema"
)

// Found is a text that looks like a placeholder.
type Found struct {
	// Text is how it is written, at most 60 bytes.
	Text string
	// Write is what to write in its place; empty for a statement, which has no counterpart.
	Write string
}

const (
	// longest is the most bytes that a placeholder takes.
	longest = 60
	// mostWords is how many words its name has.
	mostWords = 4
)

// form is a way to write a placeholder.
type form struct {
	open, close string
	// loose forms are placeholders whatever stands in them, as long as it can be a name: others are read as one only where
	// that is the name of something that a mail would hold.
	loose bool
	// statement tells that nothing can be written in its place.
	statement bool
}

// forms are tried in order where a text goes on with one of these characters: longer ones first.
var forms = []form{
	{open: "{%", close: "%}", statement: true}, {open: "<%", close: "%>", loose: true}, {open: "*|", close: "|*", loose: true},
	{open: "${", close: "}", loose: true}, {open: "#{", close: "}", loose: true}, {open: "{", close: "}", loose: true},
	{open: "[[", close: "]]"}, {open: "[", close: "]"}, {open: "%(", close: ")s", loose: true}, {open: "%%", close: "%%"},
	{open: "%", close: "%"}, {open: "<<", close: ">>"}, {open: "<", close: ">"},
}

// Find returns the first so many placeholders of another language in a text, each once. keys are the names of values that the
// draft has. The time is linear in the length of the text.
func Find(text string, keys []string, most int) (list []Found) {
	before := byte(' ')
	for text != "" && len(list) < most {
		i := strings.IndexAny(text, "{<*$#[%")
		if i < 0 {
			break
		}
		if i > 0 {
			before = text[i-1]
		}
		text = text[i:]
		if strings.HasPrefix(text, "{{") { // Hub's own
			_, after, _ := strings.Cut(text, "}}")
			text, before = after, '}'
			continue
		}
		found, length := at(text, before, keys)
		if found.Text != "" && !slices.ContainsFunc(list, func(f Found) bool { return f.Text == found.Text }) {
			list = append(list, found)
		}
		before, text = text[length-1], text[length:]
	}
	return list
}

// Message says what recipients will read literally in these members of a draft, and what to write instead.
func Message(list []Found, members []string) string {
	var texts, writes []string
	hint := ""
	for _, f := range list {
		texts = append(texts, f.Text)
		if f.Write != "" {
			writes = append(writes, f.Write+" for "+f.Text)
		}
		if strings.HasPrefix(f.Write, "{{context.") {
			hint = ", with the value in each target's context"
		}
	}
	if len(writes) == 0 {
		writes, hint = []string{"the text itself, as subject or body of a target that needs another one"}, ""
	}
	return fmt.Sprintf("recipients will read %s literally (in %s): write %s%s", strings.Join(texts, " and "), strings.Join(members, ", "),
		strings.Join(writes, ", "), hint)
}

// at reads a placeholder where the text begins, and tells how many bytes of the text are done with.
func at(text string, before byte, keys []string) (Found, int) {
	if strings.HasPrefix(text, "%s") && !alphanumeric(before) && (len(text) == 2 || !alphanumeric(text[2])) {
		return Found{Text: "%s", Write: "{{context.KEY}}"}, 2
	}
	for _, f := range forms {
		rest, begins := strings.CutPrefix(text, f.open)
		if !begins {
			continue
		}
		end := strings.Index(rest[:min(len(rest), longest-len(f.open))], f.close)
		if end < 0 {
			continue
		}
		whole := text[:len(f.open)+end+len(f.close)]
		inner := strings.Trim(rest[:end], " =-")
		if f.statement && utf8.ValidString(whole) && !strings.ContainsFunc(whole, schema.Unprintable) {
			return Found{Text: whole}, len(whole)
		}
		// A link of Markdown is [text](address).
		if !named(inner) || f.open == "[" && strings.HasPrefix(text[len(whole):], "(") || !f.loose && !field(inner, keys) {
			continue
		}
		return Found{Text: whole, Write: hubs(inner, keys)}, len(whole)
	}
	return Found{}, 1
}

// named tells that a text can be the name of a value: a few words of letters and digits, or one number of a place.
func named(inner string) bool {
	letters := false
	for _, r := range inner {
		letters = letters || unicode.IsLetter(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("_-. ", r) {
			return false
		}
	}
	return inner != "" && (letters && len(words(inner)) <= mostWords || len(inner) <= 2 && strings.Trim(inner, "0123456789") == "")
}

// fields are names that stand for a value by themselves, and companions words that go along with one.
var (
	fields = []string{
		"name", "firstname", "lastname", "fullname", "toname", "surname", "username", "company", "companyname", "brand", "brandname",
		"partner", "partnername", "email", "contact", "recipient", "customer", "fname", "lname", "이름", "성함", "고객명", "회사명", "브랜드명",
		"담당자", "담당자명", "이메일", "名前", "お名前", "氏名", "会社名", "姓名", "公司名称",
	}
	companions = []string{
		"your", "my", "our", "the", "insert", "enter", "add", "here", "first", "last", "full", "family", "given", "of", "to", "job",
		"person", "client", "user", "member", "address", "phone", "number", "title", "position", "role", "date", "url", "link", "website",
		"category", "product", "campaign", "business", "organization", "organisation", "sender",
	}
)

// field tells that a name is that of a value that the draft has, or that a mail would hold.
func field(inner string, keys []string) bool {
	if slices.Contains(fields, folded(inner)) || slices.ContainsFunc(keys, func(k string) bool { return folded(k) == folded(inner) }) {
		return true
	}
	list, some := words(inner), false
	for _, word := range list {
		some = some || slices.Contains(fields, word) || word == "your" || word == "insert"
		if !slices.Contains(fields, word) && !slices.Contains(companions, word) {
			return false
		}
	}
	return some && len(list) > 1
}

// hubs is the placeholder of Hub's that was meant.
func hubs(inner string, keys []string) string {
	plain := folded(strings.TrimPrefix(inner, "context."))
	for _, k := range keys {
		if folded(k) == plain && named(k) {
			return "{{context." + k + "}}"
		}
	}
	for _, prefix := range []string{"your", "insert", "the"} {
		plain = strings.TrimPrefix(plain, prefix)
	}
	switch plain {
	case "name", "toname", "firstname", "fullname", "fname", "recipient", "recipientname", "contact", "contactname", "nameofrecipient",
		"이름", "성함", "담당자", "담당자명", "고객명", "名前", "お名前", "氏名", "姓名":
		return "{{toName}}"
	case "email", "toemail", "emailaddress", "이메일":
		return "{{toEmail}}"
	}
	key := strings.Join(strings.Fields(strings.TrimPrefix(inner, "context.")), "_")
	if key == "" || strings.Trim(key, "0123456789") == "" {
		key = "KEY"
	}
	return "{{context." + key + "}}"
}

// words are those of a name in small letters, apart by what is neither letter nor digit, and by a capital after a small letter.
func words(name string) []string {
	var b strings.Builder
	small := false
	for _, r := range name {
		if unicode.IsUpper(r) && small {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		if strings.ContainsRune("_-.", r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// folded is a name without what people write differently.
func folded(name string) string { return strings.Join(words(name), "") }

// alphanumeric tells letters and digits of ASCII.
func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}
