package body

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// declaration is a property and its value: lower case, escapes resolved, comments gone.
type declaration struct {
	property, value string
	important       bool
}

// rule is a style rule with the condition of the @media around it, if it has one.
type rule struct {
	selectors    []string
	declarations []declaration
	condition    string
	// unread is what of it is not followed here, if anything.
	unread string
}

// declarations reads what stands in a style attribute or between the braces of a rule.
func declarations(css string) (list []declaration) {
	for part := range pieces(css, ';') {
		property, value, ok := strings.Cut(plainCSS(part), ":")
		if property = strings.TrimSpace(property); !ok || property == "" {
			continue
		}
		value = fold(value)
		bare, important := strings.CutSuffix(strings.TrimSpace(strings.TrimSuffix(value, "important")), "!")
		if important {
			value = strings.TrimSpace(bare)
		}
		list = append(list, declaration{property, value, important})
	}
	return list
}

// pieces splits CSS at a separator that stands outside of strings, brackets and comments.
func pieces(css string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(css) > 0 {
			end := until(css, separator, 0)
			if !yield(css[:end]) || end == len(css) {
				return
			}
			css = css[end+1:]
		}
	}
}

// until finds the first of two characters outside of strings, brackets and comments, or the
// end. A closing bracket that nothing opened is skipped.
func until(css string, a, b byte) int {
	depth := 0
	for i := 0; i < len(css); i++ {
		switch c := css[i]; {
		case depth == 0 && (c == a || c == b && b != 0):
			return i
		case c == '\\':
			i++
		case c == '/' && strings.HasPrefix(css[i:], "/*"):
			end := strings.Index(css[i+2:], "*/")
			if end < 0 {
				return len(css)
			}
			i += 2 + end + 1
		case c == '"' || c == '\'':
			for i++; i < len(css) && css[i] != c && css[i] != '\n'; i++ {
				if css[i] == '\\' {
					i++
				}
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case (c == ')' || c == ']' || c == '}') && depth > 0:
			depth--
		}
	}
	return len(css)
}

// plainCSS resolves escapes, drops comments and lowers the case.
func plainCSS(css string) string {
	if !strings.ContainsAny(css, `\/`) {
		return strings.ToLower(css)
	}
	var b strings.Builder
	for i := 0; i < len(css); i++ {
		switch {
		case strings.HasPrefix(css[i:], "/*"):
			end := strings.Index(css[i+2:], "*/")
			if end < 0 {
				return strings.ToLower(b.String())
			}
			i += 2 + end + 1
		case css[i] == '\\' && i+1 < len(css):
			n := 0
			for n < 6 && i+1+n < len(css) && strings.IndexByte("0123456789abcdefABCDEF", css[i+1+n]) >= 0 {
				n++
			}
			if n == 0 {
				_, n = utf8.DecodeRuneInString(css[i+1:])
				b.WriteString(css[i+1 : i+1+n])
				i += n
				continue
			}
			code, _ := strconv.ParseUint(css[i+1:i+1+n], 16, 32) // at most six digits
			b.WriteRune(rune(code))
			i += n
			if i+1 < len(css) && strings.IndexByte(" \t\n\r\f", css[i+1]) >= 0 {
				i++
			}
		default:
			b.WriteByte(css[i])
		}
	}
	return strings.ToLower(b.String())
}

// maxAtDepth bounds rules in @media in @supports and so on.
const maxAtDepth = 8

// readRules reads a style sheet. What it does not understand it skips as browsers do: to the
// end of the block or of the statement.
func readRules(css, condition string, depth int, take func(rule)) {
	for len(css) > 0 {
		css = strings.TrimLeft(css, " \t\r\n\f")
		if rest, ok := cutAny(css, "<!--", "-->", "}"); ok {
			css = rest
			continue
		}
		head := until(css, '{', ';')
		if head == len(css) {
			if prelude := plainCSS(css); strings.HasPrefix(prelude, "@import") {
				take(rule{unread: fold(prelude)})
			}
			return
		}
		prelude := strings.TrimSpace(plainCSS(css[:head]))
		if css[head] == ';' && strings.HasPrefix(prelude, "@") {
			if strings.HasPrefix(prelude, "@import") {
				take(rule{unread: fold(prelude)})
			}
			css = css[head+1:]
			continue
		}
		// A semicolon in a selector makes it invalid, and does not end it.
		valid := css[head] != ';'
		for head < len(css) && css[head] == ';' {
			head += 1 + until(css[head+1:], '{', ';')
		}
		if head >= len(css) {
			return
		}
		end := head + 1 + until(css[head+1:], '}', 0)
		block := css[head+1 : end]
		css = css[min(end+1, len(css)):]
		switch {
		case strings.HasPrefix(prelude, "@media"), strings.HasPrefix(prelude, "@supports"),
			strings.HasPrefix(prelude, "@layer"), strings.HasPrefix(prelude, "@container"), strings.HasPrefix(prelude, "@scope"):
			if depth < maxAtDepth {
				readRules(block, both(condition, conditionOf(prelude)), depth+1, take)
			}
		case strings.HasPrefix(prelude, "@font-face") && strings.Contains(plainCSS(block), "data:"):
			take(rule{unread: "a font that the mail brings itself"})
		case strings.HasPrefix(prelude, "@"):
		default:
			r := rule{declarations: declarations(block), condition: condition}
			if valid && until(block, '{', 0) < len(block) {
				r.unread = "rules inside of the rule " + fold(prelude)
			}
			for selector := range pieces(prelude, ',') {
				r.selectors = append(r.selectors, strings.TrimSpace(selector))
			}
			take(r)
		}
	}
}

func cutAny(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return rest, true
		}
	}
	return s, false
}

// conditionOf is the prelude of an at-rule if it may not hold on an ordinary screen.
func conditionOf(prelude string) string {
	if media, ok := strings.CutPrefix(prelude, "@media"); ok {
		return mediaCondition(media)
	}
	if strings.HasPrefix(prelude, "@layer") {
		return ""
	}
	return prelude
}

// mediaCondition is the media query if it is more than "all" or "screen".
func mediaCondition(media string) string {
	switch media = fold(strings.ToLower(media)); media {
	case "", "all", "screen", "only screen", "only all", "screen, print", "print, screen":
		return ""
	}
	return "@media " + media
}

func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// length reads a length in CSS pixels. A percentage or em is taken of base.
func length(text string, base float64) (px float64, ok bool) {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "calc("), ")")
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789.+-", r) })
	if end < 0 {
		end = len(text)
	}
	// 1e-9px is a length as well.
	if end > 0 && end < len(text) && text[end] == 'e' {
		exponent := end + 1
		for exponent < len(text) && strings.IndexByte("0123456789+-", text[exponent]) >= 0 {
			exponent++
		}
		if _, err := strconv.ParseFloat(text[:exponent], 64); err == nil {
			end = exponent
		}
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return 0, false
	}
	switch strings.TrimSpace(text[end:]) {
	case "", "px":
		return n, true
	case "pt":
		return n * 4 / 3, true
	case "pc":
		return n * 16, true
	case "in":
		return n * 96, true
	case "cm":
		return n * 96 / 2.54, true
	case "mm":
		return n * 96 / 25.4, true
	case "q":
		return n * 96 / 101.6, true
	case "em", "ic", "cap", "lh":
		return n * base, true
	case "ex", "ch":
		return n * base / 2, true
	case "%":
		return n * base / 100, true
	case "rem", "ric", "rcap", "rch", "rex", "rlh":
		return n * 16, true
	case "cqw", "cqh", "cqi", "cqb", "cqmin", "cqmax", "vw", "vh", "vmin", "vmax", "svh", "lvh", "dvh", "svw", "lvw", "dvw", "vi", "vb":
		return n * 8, true
	}
	return 0, false
}
