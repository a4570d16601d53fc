// Package lexer cuts a SQL statement into tokens exactly as MariaDB and MySQL do, and finds its parentheses, its
// WITH lists and the arguments of its calls. It is no parser: it builds no tree, and knows no more of the grammar than the
// rules of package sqlguard need. It refuses what two servers could cut differently, and what ends a statement.
package lexer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxRunes bounds a statement (CONTRACT.md 6.2).
const MaxRunes = 8000

// A Token is one lexical element outside comments and white space.
type Token struct {
	// Key decides the grammar: the upper-case text of a word that may be a
	// keyword, or a punctuation mark. It is empty for what can never be a
	// keyword: a quoted or dotted name, a literal, a variable.
	Key string
	// Name is the upper-case text of a word or of a quoted or dotted name.
	Name string
	// Text is the token as it stands, from byte offset Start to End.
	Text       string
	Start, End int
	// Mate is the index of the other parenthesis of this one's pair, once Pair has found it.
	Mate int
	// Quoted, Digits and Variable tell a string, a plain integer and a user variable.
	Quoted, Digits, Variable bool
	// Heads marks a name whose parenthesis holds a list of columns, once MarkLists has found it.
	Heads bool
	// Defines is the name of a WITH list whose query this parenthesis opens, once MarkLists has found it.
	Defines string
}

// A lexer cuts a statement into tokens.
type lexer struct {
	text       string
	upper      string // text with ASCII letters in upper case, of equal length
	start, pos int    // the piece being read is text[start:pos]
	toks       Tokens
}

// Lex cuts text the way the server does (lex_one_token in its sql_lex.cc) and
// refuses what two readers could cut differently and what ends a statement. Its
// error is a *Refusal.
func Lex(text string) (Tokens, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	l := lexer{text: text, upper: strings.Map(UpperASCII, text), toks: make(Tokens, 0, len(text)/3+4)}
	for l.pos < len(text) {
		before := len(l.toks)
		err := l.next()
		if err == nil && len(l.toks) > before {
			err = checkLetters(*l.last())
		}
		if err != nil {
			return nil, err
		}
	}
	return l.toks, nil
}

// checkText refuses text that is too long or that is not plain UTF-8.
func checkText(text string) error {
	if !utf8.ValidString(text) {
		return Refuse("sql.encoding", "the statement is not valid UTF-8: send UTF-8 text")
	}
	if n := utf8.RuneCountInString(text); n > MaxRunes {
		return Refuse("sql.length", "the statement has %d characters: shorten it to %d or fewer", n, MaxRunes)
	}
	if strings.HasPrefix(text, "\ufeff") {
		return Refuse("sql.encoding", "the statement starts with a byte-order mark: leave it out")
	}
	if strings.HasPrefix(strings.TrimSpace(text), "```") {
		return Refuse("sql.fence", "the statement stands in a markdown fence: leave out the lines with ```, and send what is between them")
	}
	for i, r := range text {
		if unicode.IsControl(r) && !isSpace(byte(r)) {
			return Refuse("sql.control", "control character U+%04X at byte %d: remove it, or write CHAR(%d) in an expression", r, i, r)
		}
	}
	return nil
}

// next reads one space, comment or token.
func (l *lexer) next() error {
	l.start = l.pos
	switch c := l.peek(0); {
	case isSpace(c):
		l.pos++
	case c == '#', c == '-' && l.peek(1) == '-' && (isSpace(l.peek(2)) || l.start+2 == len(l.text)):
		// A double minus opens a comment only before a space or the end:
		// in SELECT 1--1;DROP TABLE t the semicolon is live.
		l.skipLine()
	case c == '/' && l.peek(1) == '*':
		return l.skipComment()
	case c == '\'', c == '"', c == '`':
		return l.quoted(c)
	case c == '@':
		l.variable()
	case IsIdent(c) && l.afterDot(): // neither number nor keyword: t.1e5, t.into
		l.pos = l.identEnd()
		l.add("", l.upper[l.start:l.pos])
	case IsDigit(c), c == '.' && IsDigit(l.peek(1)) && !l.afterName():
		if l.pos = l.numberEnd(); l.pos == l.start {
			return l.word() // a name such as 1a
		}
		l.add("", "")
		l.last().Digits = digitsEnd(l.text, l.start) == l.pos
	case IsIdent(c):
		return l.word()
	default:
		return l.punctuation(c)
	}
	return nil
}

// peek returns the byte n places ahead, 0 behind the end.
func (l *lexer) peek(n int) byte {
	if l.pos+n < len(l.text) {
		return l.text[l.pos+n]
	}
	return 0
}

// add appends the piece being read as a token.
func (l *lexer) add(key, name string) {
	l.toks = append(l.toks, Token{Key: key, Name: name, Text: l.text[l.start:l.pos], Start: l.start, End: l.pos})
}

// last is the token that was added last.
func (l *lexer) last() *Token { return &l.toks[len(l.toks)-1] }

// touching returns the previous token if it ends where the piece starts.
func (l *lexer) touching() (Token, bool) {
	if n := len(l.toks); n > 0 && l.toks[n-1].End == l.start {
		return l.toks[n-1], true
	}
	return Token{}, false
}

func (l *lexer) afterDot() bool {
	t, ok := l.touching()
	return ok && t.Key == "."
}

// afterName tells t.5 (a name) from `t`.5 and 5 .5 (numbers).
func (l *lexer) afterName() bool {
	t, ok := l.touching()
	return ok && t.Name != "" && l.text[l.start-1] != '`'
}

func (l *lexer) identEnd() int {
	end := l.pos
	for end < len(l.text) && IsIdent(l.text[end]) {
		end++
	}
	return end
}

// word reads an unquoted word. One that a dot and a name follow at once is no
// keyword for the server either: update.id is a column of `update`.
func (l *lexer) word() error {
	l.pos = l.identEnd()
	name := l.upper[l.start:l.pos]
	if name[0] == '$' && strings.Contains(name[1:], "$") {
		return Refuse("sql.dollar", "%.40s opens a dollar-quoted string on some servers: write '...' instead", name)
	}
	if l.peek(0) == '.' && IsIdent(l.peek(1)) {
		l.add("", name)
	} else {
		l.add(name, name)
	}
	return nil
}

// numberEnd returns where the number ends, or its start where the server reads
// a name (1a, 0xyz, 1e). A keyword may follow without a space: 1e1into, .5into.
func (l *lexer) numberEnd() int {
	t, end := l.text, l.pos
	if t[end] == '0' && (l.peek(1) == 'x' || l.peek(1) == 'b') {
		digits := "01"
		if l.peek(1) == 'x' {
			digits = "0123456789abcdefABCDEF"
		}
		end = l.identEnd()
		if d := t[l.pos+2 : end]; d == "" || strings.Trim(d, digits) != "" {
			return l.pos
		}
		return end
	}
	end = digitsEnd(t, end)
	if end < len(t) && t[end] == '.' {
		return exponentEnd(t, digitsEnd(t, end+1))
	}
	if exp := exponentEnd(t, end); exp > end || end == len(t) || !IsIdent(t[end]) {
		return exp
	}
	return l.pos
}

// variable reads @name, or the marks before @`name`, @'name' and @@name. The
// dots of @a.b belong to its name.
func (l *lexer) variable() {
	l.pos++
	switch l.peek(0) {
	case '@':
		l.pos++
		l.add("@@", "")
	case '\'', '"', '`':
		l.add("@", "")
	default:
		for IsIdent(l.peek(0)) || l.peek(0) == '.' {
			l.pos++
		}
		l.add("", "")
		l.last().Variable = true
	}
}

// quoted reads '...', "..." (strings: sql_mode is pinned without ANSI_QUOTES
// and NO_BACKSLASH_ESCAPES) or `...` (a name, which knows no backslash).
func (l *lexer) quoted(quote byte) error {
	for l.pos++; l.pos < len(l.text); l.pos++ {
		switch c := l.text[l.pos]; {
		case c == '\\' && quote != '`':
			l.pos++
		case c == quote && l.peek(1) == quote:
			l.pos++
		case c == quote:
			l.pos++
			if quote == '`' {
				l.add("", l.upper[l.start+1:l.pos-1])
			} else {
				l.add("", "")
				l.last().Quoted = true
			}
			return nil
		}
	}
	return Refuse("sql.unterminated", "%c at byte %d is never closed: close it, and write a %[1]c inside it twice", quote, l.start)
}

// skipLine skips a comment up to its line feed: a carriage return is part of it.
func (l *lexer) skipLine() {
	if n := strings.IndexByte(l.text[l.pos:], '\n'); n >= 0 {
		l.pos += n
	} else {
		l.pos = len(l.text)
	}
}

// skipComment skips a block comment, which does not nest, and refuses the ones
// that a server executes (/*! all, /*M! MariaDB, /*T! TiDB) or obeys as a hint.
func (l *lexer) skipComment() error {
	body, _, closed := strings.Cut(l.upper[l.pos+2:], "*/")
	if !closed {
		return Refuse("sql.unterminated", "the comment at byte %d is never closed: end it with */", l.pos)
	}
	if m := strings.IndexByte(body, '!'); m == 0 || m == 1 && 'A' <= body[0] && body[0] <= 'Z' {
		return Refuse("sql.comment", "/*%s is a comment that some servers execute: write its content as plain SQL, or "+
			"leave it out", body[:m+1])
	}
	if strings.HasPrefix(body, "+") {
		for _, hint := range [...]string{"SET_VAR", "MAX_EXECUTION_TIME", "RESOURCE_GROUP"} {
			if strings.Contains(body, hint) {
				return Refuse("sql.hint", "the hint %s would change the limits of the session: leave it out", hint)
			}
		}
		// MySQL reads quoted names in a hint, MariaDB reads up to the first */.
		for _, quote := range [...]string{"`", `"`, "'"} {
			if strings.Count(body, quote)%2 != 0 {
				return Refuse("sql.hint", "the hint has an unclosed %s: close it before */", quote)
			}
		}
	}
	l.pos += len(body) + 4
	return nil
}

func (l *lexer) punctuation(c byte) error {
	switch c {
	case ';':
		return Refuse("sql.semicolon", "semicolon at byte %d: send exactly one statement, without a semicolon at its end", l.pos)
	case '?':
		return Refuse("sql.placeholder", "placeholder ? at byte %d: write the value itself", l.pos)
	case ':':
		if l.peek(1) == '=' {
			return Refuse("sql.assignment", ":= sets a user variable: use a window function such as ROW_NUMBER() OVER (...), or WITH")
		}
		if l.peek(1) == ':' {
			return Refuse("sql.cast", ":: at byte %d is PostgreSQL's cast: write CAST(value AS type), with CHAR, SIGNED, "+
				"DECIMAL(18,2), DATE or DATETIME", l.pos)
		}
		if len(l.toks) == 1 && l.toks[0].Name != "" && !heads[l.toks[0].Key] {
			return Refuse("sql.head", "the statement begins with %.40q: leave that out, and send the statement alone",
				l.text[l.toks[0].Start:l.pos+1])
		}
		return Refuse("sql.placeholder", "colon at byte %d: write the value itself instead of a :name", l.pos)
	case '\\':
		return Refuse("sql.backslash", "backslash at byte %d outside a string: leave out \\G and the like, and write NULL for \\N", l.pos)
	}
	l.pos++
	l.add(l.text[l.start:l.pos], "")
	return nil
}

// heads are the words that a reading statement begins with.
var heads = WordSet(`SELECT WITH SHOW EXPLAIN DESCRIBE DESC`)

// digitsEnd returns the end of the decimal digits of t at i.
func digitsEnd(t string, i int) int {
	for i < len(t) && IsDigit(t[i]) {
		i++
	}
	return i
}

// exponentEnd returns the end of e5, E+5 or e-5 of t at i, or i without one.
func exponentEnd(t string, i int) int {
	if i == len(t) || t[i]|0x20 != 'e' {
		return i
	}
	from := i + 1
	if from < len(t) && (t[from] == '+' || t[from] == '-') {
		from++
	}
	if end := digitsEnd(t, from); end > from {
		return end
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsIdent reports whether c may stand in an unquoted name: every byte of a
// multi-byte character may.
func IsIdent(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' && c < utf8.RuneSelf || IsDigit(c) || c == '_' || c == '$' || c >= utf8.RuneSelf
}

// UpperASCII is r in upper case where it is an ASCII letter, and r otherwise: what servers do with keywords.
func UpperASCII(r rune) rune {
	if 'a' <= r && r <= 'z' {
		r -= 'a' - 'A'
	}
	return r
}
