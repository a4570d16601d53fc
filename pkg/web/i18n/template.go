package i18n

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Template is the source of a page in the language of the catalogue. A message is what stands in a row between two tags that are no part
// of a sentence, or between two actions that choose; in it {1} is an action that prints, and <b> a tag without its attributes:
//
//	<p>{{.By}} has <b class="x">no</b> mail.</p>   {1} has <b>no</b> mail.
//
// The attributes that people read (title, aria-label, placeholder, alt, data-label) are messages as well, as are the words that
// plural, badge and say are given.
// It is called once for each page and language, when a site is made. A source whose tags or actions do not end is an error.
func (c *Catalogue) Template(source string) (string, error) {
	if c == nil {
		return source, nil
	}
	return rewrite(source, func(message string) string { return c.Text(message) })
}

// Messages are those of a page, in the order of the page.
// The test of the catalogues (pkg/hubtest) holds ko.json to this list: what is missing, and what nobody says any more.
func Messages(source string) (list []string, err error) {
	_, err = rewrite(source, func(message string) string { list = append(list, message); return message })
	for _, words := range plurals.FindAllStringSubmatch(source, -1) {
		list = append(list, "{1} "+words[1])
	}
	for _, words := range append(badges.FindAllStringSubmatch(source, -1), says.FindAllStringSubmatch(source, -1)...) {
		list = append(list, words[1])
	}
	return list, err
}

// isWord reports whether a byte may be part of a name in a script.
func isWord(c byte) bool {
	return c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// InScript are the messages of a script: say("…").
// Scripts are not rewritten: say looks the text up in the browser, in the catalogue that the page has.
func InScript(source []byte) (list []string) {
	for _, at := range scripts.FindAllSubmatchIndex(source, -1) {
		if at[0] == 0 || !isWord(source[at[0]-1]) {
			list = append(list, string(source[at[2]:at[3]]))
		}
	}
	return list
}

var (
	// An example: say("{1} rows", n). A text in single quotes is not found. That no longer name ends in say is looked at apart: an
	// expression that begins with a text is searched for many times as fast.
	scripts = regexp.MustCompile(`say\("((?:[^"\\]|\\.)*)"`)
	// plurals finds {{plural .Count "draft" "drafts"}}, badges {{template "badge" (badge "good" "Active")}}, and says (say "No keys
	// yet").
	plurals = regexp.MustCompile(`\bplural (?:\([^)]*\)|\S+) "[^"]*" "([^"]*)"`)
	badges  = regexp.MustCompile(`\(badge "[^"]*" "([^"]*)"\)`)
	says    = regexp.MustCompile(`\bsay "([^"]*)"`)
	// choosing are the actions that end a message.
	choosing = regexp.MustCompile(`^\{\{-?\s*(?:if|else|end|range|with|define|block|break|continue|/\*|\$\w+(?:, \$\w+)? :?=)`)
	// inline are the elements that are part of a sentence; all others end a message. What code and kbd say is nobody's language.
	inline = map[string]bool{"a": true, "abbr": true, "b": true, "bdi": true, "cite": true, "code": true, "em": true, "i": true,
		"kbd": true, "q": true, "small": true, "span": true, "strong": true, "sub": true, "sup": true, "u": true}
	// attribute is one that people read, up to its value.
	attribute = regexp.MustCompile(`\s(?:title|aria-label|placeholder|alt|data-label)="$`)
	// A regular expression takes a time by the length of its text, even where it looks at the beginning alone.
	name = regexp.MustCompile(`^</?([a-zA-Z][a-zA-Z0-9]*)`)
)

// longestAttribute is the length of what attribute finds at most: a blank, the longest name, = and a quote.
const longestAttribute = len(` placeholder="`)

// kind says what a token does in a sentence.
type kind int

const (
	text   kind = iota
	value       // an action that prints
	choice      // an action that chooses
	opens       // a tag
	closes
	other // a comment, a doctype, or a tag that is no part of a sentence
)

// token is a piece of a template's source; all of them in a row are the source again.
type token struct {
	kind   kind
	source string
	name   string // of a tag
	ends   int    // where the tag that closes it is; 0 for none
}

// rewrite has each message of a page replaced.
// It splits the page at tokens that end a message; what stands between two of them is a sentence, with the inline tags in it.
func rewrite(source string, say func(message string) string) (string, error) {
	tokens, err := scan(source, say)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for len(tokens) > 0 {
		n := 0
		for n < len(tokens) && tokens[n].kind != choice && tokens[n].kind != other {
			n++
		}
		sentence(&b, tokens[:n], say)
		if n < len(tokens) {
			b.WriteString(tokens[n].source)
			n++
		}
		tokens = tokens[n:]
	}
	return b.String(), nil
}

// scan cuts a page into tokens. The attributes that people read are replaced in it already.
func scan(source string, say func(string) string) (tokens []token, err error) {
	add := func(k kind, s string) { tokens = append(tokens, token{kind: k, source: s}) }
	for source != "" {
		switch {
		case strings.HasPrefix(source, "{{"):
			// An action is no HTML, so it is looked for first: {{if eq .A "<b>"}} has no tag in it.
			n := action(source)
			if n < 0 {
				return nil, fmt.Errorf("an action does not end: %.40q", source)
			}
			k := value
			if choosing.MatchString(source[:n]) {
				k = choice
			}
			add(k, source[:n])
			source = source[n:]
		case strings.HasPrefix(source, "<!--"):
			n := strings.Index(source, "-->")
			if n < 0 {
				return nil, fmt.Errorf("a comment does not end: %.40q", source)
			}
			add(other, source[:n+3])
			source = source[n+3:]
		case len(source) > 1 && source[0] == '<' && (source[1] == '/' || source[1] == '!' || unicode.IsLetter(rune(source[1]))):
			rest, t, err := tag(source, say)
			if err != nil {
				return nil, err
			}
			tokens, source = append(tokens, t), rest
			// What stands in a style or a script is code, whatever it looks like.
			if t.name == "style" || t.name == "script" {
				if n := strings.Index(source, "</"+t.name); t.kind == other && n > 0 && !strings.HasPrefix(t.source, "</") {
					add(other, source[:n])
					source = source[n:]
				}
			}
		default:
			n := 1
			for n < len(source) && source[n] != '<' && !strings.HasPrefix(source[n:], "{{") {
				n++
			}
			add(text, source[:n])
			source = source[n:]
		}
	}
	return tokens, nil
}

// action is the length of the action that a source begins with; -1 for one that does not end.
// A }} in a string or a comment of the template does not end it: {{say "}}"}}.
func action(source string) int {
	if strings.HasPrefix(strings.TrimLeft(source[2:], "- "), "/*") {
		if n := strings.Index(source, "*/"); n >= 0 {
			if end := strings.Index(source[n:], "}}"); end >= 0 {
				return n + end + 2
			}
		}
		return -1
	}
	quote := byte(0)
	for i := 2; i < len(source); i++ {
		switch c := source[i]; {
		case quote != 0 && c == '\\' && quote == '"':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`':
			quote = c
		case c == '}' && strings.HasPrefix(source[i:], "}}"):
			return i + 2
		}
	}
	return -1
}

// tag takes a tag from the begin of a source. Its attributes that people read are replaced.
// An action within a tag is a part of it, as in <a href="{{.Href}}" {{if .Here}}aria-current="page"{{end}}>.
func tag(source string, say func(string) string) (rest string, t token, err error) {
	var b strings.Builder
	begin, i := 0, 0 // of what is not yet in b
	quoted := false
	for ; i < len(source); i++ {
		switch {
		case strings.HasPrefix(source[i:], "{{"):
			n := action(source[i:])
			if n < 0 {
				return "", t, fmt.Errorf("an action does not end: %.40q", source[i:])
			}
			i += n - 1
		case source[i] == '"':
			if quoted = !quoted; quoted && attribute.MatchString(source[max(0, i+1-longestAttribute):i+1]) {
				b.WriteString(source[begin : i+1])
				n, err := closing(source[i+1:])
				if err != nil {
					return "", t, err
				}
				// The value is a page of its own: it may have actions, and {{if}} splits it into messages.
				read, err := rewrite(source[i+1:i+1+n], say)
				if err != nil {
					return "", t, err
				}
				b.WriteString(read)
				begin, i, quoted = i+1+n, i+1+n, false
			}
		// A ">" within quotes or an action is no end: <a title="a > b">.
		case source[i] == '>' && !quoted:
			b.WriteString(source[begin : i+1])
			t = token{kind: other, source: b.String()}
			if m := name.FindStringSubmatch(source[:i+1]); m != nil {
				t.name = strings.ToLower(m[1])
			}
			switch {
			case !inline[t.name]:
			case source[1] == '/':
				t.kind = closes
			default:
				t.kind = opens
			}
			return source[i+1:], t, nil
		}
	}
	return "", t, fmt.Errorf("a tag does not end: %.40q", source)
}

// closing is where the quote is that ends an attribute.
// Quotes of an action in the value are not it: title="{{say "Name"}}".
func closing(source string) (int, error) {
	for i := 0; i < len(source); i++ {
		switch {
		case strings.HasPrefix(source[i:], "{{"):
			n := action(source[i:])
			if n < 0 {
				return 0, fmt.Errorf("an action does not end: %.40q", source[i:])
			}
			i += n - 1
		case source[i] == '"':
			return i, nil
		}
	}
	return 0, fmt.Errorf("an attribute does not end: %.40q", source)
}

// sentence writes tokens between which nothing chooses. A tag whose other end is not among them cuts them.
// An example: in "<b>{{if .X}}" the tag <b> has its end behind the {{if}}, so it belongs to no message here.
func sentence(b *strings.Builder, tokens []token, say func(string) string) {
	var open []int
	for i := range tokens {
		tokens[i].ends = 0
		switch t := &tokens[i]; t.kind {
		case opens:
			open = append(open, i)
		case closes:
			if n := len(open); n > 0 && tokens[open[n-1]].name == t.name {
				tokens[open[n-1]].ends, t.ends = i, i
				open = open[:n-1]
			}
		}
	}
	begin := 0
	for i, t := range tokens {
		if (t.kind == opens || t.kind == closes) && t.ends == 0 {
			whole(b, tokens[begin:i], begin, say)
			b.WriteString(t.source)
			begin = i + 1
		}
	}
	whole(b, tokens[begin:], begin, say)
}

// whole writes tokens in which each tag has its other end. offset is the place of the first, which ends count from.
// With a word of its own the whole is one message, its tags included; without one each tag is looked into alone, so that a row of links
// is several messages.
func whole(b *strings.Builder, tokens []token, offset int, say func(string) string) {
	direct := false // a word that is in no tag
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case t.kind == text && strings.ContainsFunc(entities.ReplaceAllString(t.source, ""), unicode.IsLetter):
			direct = true
		case t.kind == opens:
			i = t.ends - offset
		}
	}
	if direct {
		message(b, tokens, say)
		return
	}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		b.WriteString(t.source)
		if t.kind != opens {
			continue
		}
		end := t.ends - offset
		if inner := tokens[i+1 : end]; t.name == "code" || t.name == "kbd" {
			for _, t := range inner {
				b.WriteString(t.source)
			}
		} else {
			whole(b, inner, offset+i+1, say)
		}
		b.WriteString(tokens[end].source)
		i = end
	}
}

var (
	entities = regexp.MustCompile(`&[a-zA-Z0-9#]+;`)
	blanks   = regexp.MustCompile(`\s+`)
	// attributes are what a template has that stands in a tag of another one.
	attributes = regexp.MustCompile(`^[a-z-]+="[^"]*"(?: [a-z-]+="[^"]*")*$`)
	places     = regexp.MustCompile(`\{\d+\}|</?[a-z]+\d*>`)
)

// message writes tokens that say something.
// Actions are numbered from 1, and so are tags of one name from the second on: <b> and <b2>. The white space around a message stays
// where it is, and that within it is one space in the key.
func message(b *strings.Builder, tokens []token, say func(string) string) {
	var key strings.Builder
	sources, times, open := map[string]string{}, map[string]int{}, []string{}
	values := 0
	for _, t := range tokens {
		switch t.kind {
		case text:
			key.WriteString(t.source)
			continue
		case opens:
			tag := t.name
			if times[t.name]++; times[t.name] > 1 {
				tag += strconv.Itoa(times[t.name])
			}
			open = append(open, tag)
			tag = "<" + tag + ">"
			sources[tag] = t.source
			key.WriteString(tag)
		case closes:
			tag := "</" + open[len(open)-1] + ">"
			// whole has made sure that each tag has its other end, so open is not empty here.
			open = open[:len(open)-1]
			sources[tag] = t.source
			key.WriteString(tag)
		default:
			values++
			place := "{" + strconv.Itoa(values) + "}"
			sources[place] = t.source
			key.WriteString(place)
		}
	}
	said := key.String()
	trimmed := strings.TrimSpace(said)
	before, after, _ := strings.Cut(said, trimmed)
	english := blanks.ReplaceAllString(trimmed, " ")
	translated := english
	if !attributes.MatchString(english) {
		translated = say(english)
	}
	if translated == english { // as it stands, with its lines
		translated = trimmed
	}
	b.WriteString(before)
	// A place that the source has not, which only a text can spell, stays as it is.
	b.WriteString(places.ReplaceAllStringFunc(translated, func(place string) string {
		if s, ok := sources[place]; ok {
			return s
		}
		return place
	}))
	b.WriteString(after)
}
