// Package i18n has the console's words in other languages. The sources are in English: what a page says stands in its template, what a
// handler says in its code. A catalogue, a file pages/ko.json beside the templates, has each of these messages in one more language, as
// gettext's do: the English text is the key. A page is translated when it is parsed, so that a template reads as the page does and no
// page pays for it; a handler's text is translated when it is made. What a catalogue lacks stays English. A test of pkg/hubtest finds what
// is missing and what nobody says any more.
package i18n

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"golang.org/x/text/language"
)

// Languages are those of the console. The first is that of the sources, and of readers who ask for none of them.
var Languages = []Language{{Tag: language.English, Name: "English"}, {Tag: language.Korean, Name: "한국어"}}

// Language is a language of the console, by its own name.
type Language struct {
	Tag  language.Tag
	Name string
}

// Code is how lang attributes and cookies name the language: "ko".
func (l Language) Code() string { return l.Tag.String() }

// matcher prefers the first, English, where nothing fits.
var matcher = language.NewMatcher([]language.Tag{Languages[0].Tag, Languages[1].Tag})

// Match is the language for a reader who has chosen one, by its code, or else for the browser's Accept-Language (RFC 9110, 12.5.4).
func Match(chosen, accepted string) Language {
	for _, l := range Languages {
		if l.Code() == chosen {
			return l
		}
	}
	const longest = 200 // a header beyond it names no language that its first ones do not
	if len(accepted) > longest {
		accepted = accepted[:max(strings.LastIndexByte(accepted[:longest], ','), 0)]
	}
	tags, _, err := language.ParseAcceptLanguage(accepted)
	if err != nil || len(tags) == 0 {
		return Languages[0]
	}
	_, index, confidence := matcher.Match(tags...)
	if confidence == language.No {
		return Languages[0]
	}
	return Languages[index]
}

// Catalogue has the messages of one language. That of English is nil: it says all as it stands in the sources.
type Catalogue struct {
	Language Language
	messages map[string]string
}

// Code is the language's: "en" for nil.
func (c *Catalogue) Code() string {
	if c == nil {
		return Languages[0].Code()
	}
	return c.Language.Code()
}

// Load reads the catalogue of a language from CODE.json of some folders; a later one adds to those before it. A folder
// without it adds nothing. It is nil for English.
// A translation that does not fit its message is an error, so the process does not start with it.
func Load(l Language, from ...fs.FS) (*Catalogue, error) {
	if l == Languages[0] {
		return nil, nil
	}
	c := &Catalogue{Language: l, messages: map[string]string{}}
	for _, files := range from {
		b, err := fs.ReadFile(files, File(l))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var messages map[string]string
		if err == nil {
			err = json.Unmarshal(b, &messages)
		}
		if err != nil {
			return nil, fmt.Errorf("i18n: %s: %w", File(l), err)
		}
		for key, text := range messages {
			if err := alike(key, text); err != nil {
				return nil, fmt.Errorf("i18n: %s: %q: %w", File(l), key, err)
			}
			c.messages[key] = text
		}
	}
	return c, nil
}

// File is the name of the catalogue of a language.
func File(l Language) string { return l.Code() + ".json" }

// held are the parts of a message that each translation has as well: values, tags, and the verbs of fmt.
var held = regexp.MustCompile(`\{\d+\}|</?[a-z]+\d*>|%(?:\[\d+\])?[+#.0-9]*[a-z]`)

// alike tells what a translation lacks of its message. It may have it in another order.
func alike(message, translation string) error {
	if strings.Count(translation, `"`) > strings.Count(message, `"`) {
		return errors.New("a quote would end the attribute that it may stand in")
	}
	left := map[string]int{}
	for _, part := range held.FindAllString(message, -1) {
		left[verb(part)]++
	}
	for _, part := range held.FindAllString(translation, -1) {
		left[verb(part)]--
	}
	for part, n := range left {
		if n != 0 {
			return fmt.Errorf("%s is not as often in the translation", part)
		}
	}
	return nil
}

// verb is a verb of fmt without the place of its argument.
func verb(part string) string {
	if strings.HasPrefix(part, "%[") {
		return "%" + part[strings.IndexByte(part, ']')+1:]
	}
	return part
}

// Text is a message in the language of the catalogue, with arguments as fmt.Sprintf has them.
// Without arguments nothing is formatted, so a message may have a per cent sign.
func (c *Catalogue) Text(message string, args ...any) string {
	if c != nil {
		if text, ok := c.messages[message]; ok {
			message = text
		}
	}
	if len(args) == 0 {
		return message
	}
	return fmt.Sprintf(message, args...)
}

// Plural is a number of things, already as digits: the message is "{1} drafts", and "{1} draft" is said of one in English.
func (c *Catalogue) Plural(number string, one bool, singular, plural string) string {
	message := "{1} " + plural
	if c == nil || c.messages[message] == "" {
		if one {
			plural = singular
		}
		return number + " " + plural
	}
	return strings.Replace(c.messages[message], "{1}", number, 1)
}

// Has reports whether the catalogue has a translation of the message.
func (c *Catalogue) Has(message string) bool {
	if c == nil {
		return true
	}
	_, ok := c.messages[message]
	return ok
}

type contextKey struct{}

// With has T of a context speak the language of the catalogue.
func With(ctx context.Context, c *Catalogue) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// Speaks tells whether the language of a context is settled: English, too, is once With has said so.
func Speaks(ctx context.Context) bool {
	_, ok := ctx.Value(contextKey{}).(*Catalogue)
	return ok
}

// From is the catalogue of a context; nil, English, of one without.
func From(ctx context.Context) *Catalogue {
	c, _ := ctx.Value(contextKey{}).(*Catalogue)
	return c
}

// T is a message in the language of who is answered, with arguments as fmt.Sprintf has them. The message is a literal, which the test
// of the catalogues finds.
func T(ctx context.Context, message string, args ...any) string {
	return From(ctx).Text(message, args...)
}

// N marks a message that is translated where it is shown: the text of a table, which knows no reader yet.
func N(message string) string { return message }
