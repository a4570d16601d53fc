// Package slip finds what in a mail reads like a mistake of whoever wrote it: Markdown, which a mail shows as it is written, a text
// that was to be replaced, links without TLS, a sender at a provider of private mailboxes, a name that is not the recipient's. It
// guesses, for a warning and for whoever reviews the mail; nothing is refused by it.
package slip

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

// private are the domains of providers of private mailboxes. They sign for their own servers alone (DMARC): a mail that Hub sends
// from such an address is refused, or taken for spam.
var private = strings.Fields(`gmail.com googlemail.com naver.com daum.net hanmail.net kakao.com nate.com korea.com yahoo.com yahoo.co.kr
	yahoo.co.jp ymail.com hotmail.com hotmail.co.kr outlook.com outlook.kr live.com msn.com icloud.com me.com mac.com aol.com gmx.com
	gmx.net gmx.de web.de mail.com mail.ru yandex.ru yandex.com proton.me protonmail.com qq.com 163.com 126.com sina.com foxmail.com
	docomo.ne.jp ezweb.ne.jp softbank.ne.jp`)

// Private is the domain of an address at a provider of private mailboxes; empty for any other.
func Private(email string) string {
	domain := strings.ToLower(email[strings.LastIndexByte(email, '@')+1:])
	for _, p := range private {
		if domain == p {
			return domain
		}
	}
	return ""
}
