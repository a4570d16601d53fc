package body

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// sheet is the rules of a body's <style> elements, by what an element must have.
type sheet struct {
	byID, byClass, byTag map[string][]*styled
	any                  []*styled
	// budget is how many comparisons are left: many rules for many elements are too many.
	budget int
	// generated is text that rules put in, unread what of the style is not followed here.
	generated []Hidden
	unread    []string
}

const matchBudget = 5_000_000

// styled is one selector of a rule.
type styled struct {
	selector selector
	text     string
	rule     *rule
	order    int
}

// selector is compounds from the element outwards.
type selector struct {
	compounds   []compound
	specificity int
	// sure is false when the selector has parts that are not compared, so that it may hold
	// for less than it seems to.
	sure bool
}

// compound is what one element must be. joint is how the compound outside of it stands to it:
// ' ' for an ancestor, '>' for the parent.
type compound struct {
	tag     string
	id      string
	classes []string
	joint   byte
}

// readSheets reads every <style> of the tree, and counts what all of CSS and the elements
// would fetch.
func readSheets(root *html.Node) (s sheet, remote int) {
	s = sheet{byID: map[string][]*styled{}, byClass: map[string][]*styled{}, byTag: map[string][]*styled{}, budget: matchBudget}
	order := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		remote += remoteOf(n)
		if n.DataAtom == atom.Link && slices.Contains(strings.Fields(strings.ToLower(value(n, "rel"))), "stylesheet") {
			s.unread = append(s.unread, "the style sheet "+fold(value(n, "href")))
		}
		if n.DataAtom != atom.Style {
			continue
		}
		css := textIn(n)
		remote += remoteInCSS(css)
		readRules(css, mediaCondition(value(n, "media")), 0, func(r rule) {
			if r.unread != "" {
				s.unread = append(s.unread, r.unread)
			}
			s.generate(r)
			r.declarations = slices.DeleteFunc(r.declarations, func(d declaration) bool { return !tells(d.property) })
			if len(r.declarations) == 0 {
				return
			}
			for _, text := range r.selectors {
				if sel, ok := parseSelector(text); ok {
					order++
					s.add(&styled{sel, text, &r, order})
				}
			}
		})
	}
	return s, remote
}

// generate notes the text that a rule puts before or after an element.
func (s *sheet) generate(r rule) {
	for _, d := range r.declarations {
		if d.property != "content" && d.property != "quotes" || strings.IndexFunc(d.value, readable) < 0 || !strings.ContainsAny(d.value, `"'`) && !strings.Contains(d.value, "attr(") {
			continue
		}
		for _, selector := range r.selectors {
			if d.property == "quotes" || strings.Contains(selector, ":") {
				s.generated = append(s.generated, Hidden{d.value, "put in by the style rule " + selector + ": mail programs that follow it show this, the preview does not"})
			}
		}
	}
}

func readable(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func (s *sheet) add(one *styled) {
	first := one.selector.compounds[0]
	switch {
	case first.id != "":
		s.byID[first.id] = append(s.byID[first.id], one)
	case len(first.classes) > 0:
		s.byClass[first.classes[0]] = append(s.byClass[first.classes[0]], one)
	case first.tag != "":
		s.byTag[first.tag] = append(s.byTag[first.tag], one)
	default:
		s.any = append(s.any, one)
	}
}

// parseSelector reads a selector in lower case. It is not ok when it can not hold for an
// element of a mail at rest: pseudo-elements, :hover and the like.
func parseSelector(text string) (sel selector, ok bool) {
	sel.sure = true
	var compounds []compound
	now := compound{joint: ' '}
	something := false
	end := func(joint byte) {
		if something {
			compounds = append(compounds, now)
			now, something = compound{joint: joint}, false
		} else if joint != ' ' {
			now.joint = joint
		}
	}
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r', '\f':
			end(' ')
			i++
		case '>', '+', '~':
			end('>')
			if last := len(compounds) - 1; c != '>' && last >= 0 {
				// Siblings are not looked at: the one in front is taken to be there.
				sel.sure = false
				now.joint, compounds = compounds[last].joint, compounds[:last]
			}
			i++
		case '*':
			something = true
			i++
		case '|': // behind a namespace
			now.tag = ""
			i++
		case '#', '.':
			name := identifier(text[i+1:])
			if name == "" {
				return sel, false
			}
			if something = true; c == '#' {
				now.id, sel.specificity = name, sel.specificity+10_000
			} else {
				now.classes, sel.specificity = append(now.classes, name), sel.specificity+100
			}
			i += 1 + len(name)
		case '[':
			something, sel.sure = true, false
			sel.specificity += 100
			i += 1 + until(text[i+1:], ']', 0)
			i = min(i+1, len(text))
		case ':':
			if strings.HasPrefix(text[i+1:], ":") { // a pseudo-element
				i++
			}
			name := identifier(text[i+1:])
			switch name {
			case "hover", "active", "focus", "focus-within", "focus-visible", "target", "visited",
				"before", "after", "placeholder", "selection", "marker", "backdrop":
				return sel, false
			case "root":
				now.tag = "html"
			case "link", "any-link":
				now.tag = "a"
			default:
				sel.sure = false
			}
			something = true
			sel.specificity += 100
			i += 1 + len(name)
			if i < len(text) && text[i] == '(' {
				i = min(i+1+until(text[i+1:], ')', 0)+1, len(text))
			}
		default:
			name := identifier(text[i:])
			if name == "" {
				return sel, false
			}
			now.tag, something = name, true
			sel.specificity++
			i += len(name)
		}
	}
	end(' ')
	slices.Reverse(compounds)
	sel.compounds = compounds
	return sel, len(compounds) > 0
}

// identifier is the name at the begin of the text.
func identifier(text string) string {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c < 0x80 {
			return text[:i]
		}
	}
	return text
}

// matched is a selector that holds for an element, with the declarations of its rule.
type matched struct {
	*styled
	sure bool
}

// match lists the rules that hold for an element, weakest first.
func (s *sheet) match(n *html.Node) (list []matched) {
	try := func(candidates []*styled) {
		for _, one := range candidates {
			if s.budget < 0 {
				return
			}
			if s.holds(one.selector.compounds, n) {
				list = append(list, matched{one, one.selector.sure && one.rule.condition == ""})
			}
		}
	}
	if len(s.byID) > 0 {
		if id := value(n, "id"); id != "" {
			try(s.byID[strings.ToLower(id)])
		}
	}
	if len(s.byClass) > 0 {
		for class := range strings.FieldsSeq(strings.ToLower(value(n, "class"))) {
			try(s.byClass[class])
		}
	}
	if len(s.byTag) > 0 {
		try(s.byTag[n.Data])
	}
	try(s.any)
	slices.SortStableFunc(list, func(a, b matched) int {
		return cmp.Or(cmp.Compare(a.selector.specificity, b.selector.specificity), cmp.Compare(a.order, b.order))
	})
	return list
}

// holds compares compounds from the element outwards.
func (s *sheet) holds(compounds []compound, n *html.Node) bool {
	if !s.fits(compounds[0], n) {
		return false
	}
	if len(compounds) == 1 {
		return true
	}
	for up := n.Parent; up != nil && up.Type == html.ElementNode; up = up.Parent {
		if s.holds(compounds[1:], up) {
			return true
		}
		if compounds[0].joint == '>' {
			return false
		}
	}
	return false
}

// fits compares one element, at the expense of the budget.
func (s *sheet) fits(c compound, n *html.Node) bool {
	s.budget--
	if s.budget < 0 || c.tag != "" && c.tag != n.Data || c.id != "" && !strings.EqualFold(c.id, value(n, "id")) {
		return false
	}
	if len(c.classes) == 0 {
		return true
	}
	class := strings.ToLower(value(n, "class"))
	s.budget -= (1 + len(class)/8) * len(c.classes)
	have := strings.Fields(class)
	return !slices.ContainsFunc(c.classes, func(want string) bool { return !slices.Contains(have, want) })
}
