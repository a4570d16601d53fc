package prose

import (
	"strings"
	"unicode"
)

// writer writes plain text: it folds white space, and keeps paragraphs, lists and quotes apart.
type writer struct {
	out    strings.Builder
	margin []margin
	deeper int  // margins that are not written
	gap    int  // line breaks that are due before the next word: at most 2
	space  bool // a space is due
	inLine bool // the line has words
	pre    int  // open <pre> elements
}

// margin stands in front of a list item's or a quote's lines; the first line has its own.
type margin struct {
	first, rest string
	begun       bool
}

// maxMargins is how deep lists and quotes are shown: a long body could have each of its words
// behind a margin as long as itself.
const maxMargins = 8

// indent begins lines behind a margin, up to the outdent.
func (p *writer) indent(first, rest string) {
	if len(p.margin) >= maxMargins {
		p.deeper++
		return
	}
	p.margin = append(p.margin, margin{first: first, rest: rest})
}

// outdent ends the innermost margin.
func (p *writer) outdent() {
	if p.deeper > 0 {
		p.deeper--
	} else {
		p.margin = p.margin[:len(p.margin)-1]
	}
}

// block has the next word stand on a line of its own (1), or after an empty one (2).
// The first words of a list item or a quote follow its mark.
func (p *writer) block(gap int) {
	p.space = false
	if last := len(p.margin) - 1; last < 0 || p.margin[last].begun || p.gap == 0 {
		p.gap = max(p.gap, gap)
	}
}

// breakLine is a <br>.
func (p *writer) breakLine() { p.gap, p.space = min(p.gap+1, 2), false }

// words writes running text.
func (p *writer) words(text string) {
	if p.pre > 0 {
		p.lines(text)
		return
	}
	for len(text) > 0 {
		start := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
		if start != 0 {
			p.space = true
		}
		if start < 0 {
			return
		}
		end := strings.IndexFunc(text[start:], unicode.IsSpace)
		if end < 0 {
			end = len(text) - start
		}
		p.word(text[start : start+end])
		text = text[start+end:]
	}
}

// lines writes text of which the lines and spaces stay as they are.
func (p *writer) lines(text string) {
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if i > 0 {
			p.breakLine()
		}
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			p.word(line)
		}
	}
}

// word writes a word, which may have spaces in it, behind the line breaks, margins and space that are due.
func (p *writer) word(word string) {
	if p.gap > 0 && p.out.Len() > 0 {
		p.out.WriteString("\n\n"[:p.gap])
		p.inLine = false
	}
	if !p.inLine {
		for i := range p.margin {
			m := &p.margin[i]
			if m.begun {
				p.out.WriteString(m.rest)
			} else {
				p.out.WriteString(m.first)
				m.begun = true
			}
		}
	} else if p.space {
		p.out.WriteByte(' ')
	}
	p.out.WriteString(word)
	p.gap, p.space, p.inLine = 0, false, true
}

func (p *writer) String() string { return p.out.String() }
