// Package lint finds what in a mail reads like a mistake of whoever wrote it: Markdown, which a mail shows as it is written, a text
// that was to be replaced, links without TLS, a sender at a provider of private mailboxes, a name that is not the recipient's. It
// guesses, for a warning and for whoever reviews the mail; nothing is refused by it.
package lint

import (
	"regexp"
	"strings"
)

// The forms of Markdown that models write, and that no mail program reads: a title, bold text, a link, a fence of code. Stars that
// stand for letters, as in 김** or 010-****-1234, are none.
var markdown = regexp.MustCompile(strings.Join([]string{
	`(?m:(?:^|[\w"'/]>)[ \t]*(#{1,6}[ \t]+[^\s#][^\n<]*))`,
	`(?m:(?:^|[\s>("'\[“‘])(\*\*[^\s*](?:[^*\n<]{0,200}[^\s*,])?\*\*)(?:[^*]|$))`,
	`(\[[^\[\]\n]{1,200}\]\((?:https?://|mailto:|www\.|\{\{)[^\s)]*\)?)`,
	"(?m:^[ \\t]*(```[a-z]*))",
}, "|"))

// Markdown is the first Markdown in a body, plain or HTML, cut to 60 characters; empty without any.
func Markdown(body string) string {
	if !strings.ContainsAny(body, "#*`") && !strings.Contains(body, "](") {
		return ""
	}
	if found := markdown.FindStringSubmatch(body); found != nil {
		return example(strings.Join(found[1:], "")) // one of them has a part
	}
	return ""
}

// unfinished finds texts that stand in the place of others.
var unfinished = regexp.MustCompile(`(?i:\blorem ipsum\b)|로렘 ?입숨|\b(?:TODO|FIXME)[ \t]*[:：]|[\[({<]\s*(?:TODO|FIXME)\b|` +
	`(?m:^[ \t]*(?:TODO|FIXME)[ \t]*$)`)

// Unfinished is the first text that was to be replaced, with what follows, cut to 60 characters; empty without any.
func Unfinished(text string) string {
	at := unfinished.FindStringIndex(text)
	if at == nil {
		return ""
	}
	return example(strings.TrimSpace(text[at[0]:]))
}

// insecure finds the addresses of links, in HTML those of elements alone: a name space is no link.
var (
	insecure     = regexp.MustCompile(`(?i)\bhttp://[^\s<>"')\]]+`)
	insecureHTML = regexp.MustCompile(`(?i)\b(?:href|src|background)\s*=\s*["']?\s*(http://[^\s<>"']+)`)
)

// Insecure is the first link without TLS in a body, cut to 60 characters; empty without any.
func Insecure(body string, isHTML bool) string {
	if !isHTML {
		return example(insecure.FindString(body))
	}
	if m := insecureHTML.FindStringSubmatch(body); m != nil {
		return example(m[1])
	}
	return ""
}

// example is the first line of a text, at most 60 characters of it.
func example(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(strings.TrimSpace(text)); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return strings.TrimSpace(text)
}
