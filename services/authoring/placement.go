package authoring

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// placement is where in HTML a text ends, so that a value that follows can be written there as
// text: the states of a tokenizer (WHATWG HTML 13.2.5) as far as they differ for a value.
type placement int

const (
	inText placement = iota
	afterLess
	inTag
	beforeValue
	unquoted
	inDouble
	inSingle
)

// after is where the text ends when it begins at p.
func (p placement) after(text string) placement {
	for i := range len(text) {
		c := text[i]
		blank := strings.IndexByte(" \t\n\f\r", c) >= 0
		switch p {
		case inText:
			if c == '<' {
				p = afterLess
			}
		case afterLess:
			switch {
			case strings.IndexByte("</!?-", c) >= 0: // what follows may still make a tag or a comment of it
			case c|0x20 >= 'a' && c|0x20 <= 'z':
				p = inTag
			default:
				p = inText
			}
		case inTag, beforeValue, unquoted:
			switch {
			case c == '>':
				p = inText
			case p == beforeValue && c == '"':
				p = inDouble
			case p == beforeValue && c == '\'':
				p = inSingle
			case p == inTag && c == '=':
				p = beforeValue
			case p == beforeValue && !blank:
				p = unquoted
			case p == unquoted && blank:
				p = inTag
			}
		case inDouble:
			if c == '"' {
				p = inTag
			}
		case inSingle:
			if c == '\'' {
				p = inTag
			}
		}
	}
	return p
}

// escape writes a value as text where it stands, and nothing but text.
func (p placement) escape(value string) string {
	first := ""
	if p == afterLess && value != "" { // which would begin a tag or a comment
		r, size := utf8.DecodeRuneInString(value)
		first, value = fmt.Sprintf("&#%d;", r), value[size:]
	}
	value = html.EscapeString(value)
	if p != inText && p != inDouble && p != inSingle {
		value = bareEscapes.Replace(value)
	}
	return first + value
}

// bareEscapes keep a value that stands in a tag without quotes in one piece.
var bareEscapes = strings.NewReplacer(" ", "&#32;", "\t", "&#9;", "\n", "&#10;", "\f", "&#12;", "\r", "&#13;",
	"=", "&#61;", "`", "&#96;", "/", "&#47;")
