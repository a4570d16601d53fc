// Package output writes what a gateway has answered for a person or a program: tables that fit a terminal, tab-separated
// lines, CSV, JSON. It trusts no text: what would steer a terminal is shown, not sent. It refuses to know tools.
package output

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"hub.internal/pkg/schema"
)

// Screen is where text goes.
type Screen struct {
	// Width is that of the terminal, in columns; 0 when there is none, and lines may have any length.
	// Width is measured in columns, as East Asian characters take two of them and combining ones none.
	Width int
	// Color allows bold and dim text.
	Color bool
}

// Bold marks a heading.
func (s Screen) Bold(text string) string { return s.styled("1", text) }

// Dim marks what is beside the point.
func (s Screen) Dim(text string) string { return s.styled("2", text) }

// styled is a text in a style (SGR of ECMA-48), or as it is where there are no colours.
func (s Screen) styled(style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// Sanitize makes one line of a text that others wrote: a line break is ↵, a tab a space, and every other character that steers
// a terminal or turns the direction of the line is shown as its number.
func Sanitize(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, schema.Unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		// What a person would see as a line break or a tab stays recognizable; the rest is a number that can be looked
		// up.
		switch {
		case r == '\n':
			b.WriteRune('↵')
		case r == '\t':
			b.WriteByte(' ')
		case schema.Unprintable(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r) // U+FFFD for what is not UTF-8
		}
	}
	return b.String()
}

// Lines are those of a text, each clean.
func Lines(text string) []string {
	lines := strings.Split(strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Sanitize(strings.ReplaceAll(line, "\t", "    "))
	}
	return lines
}

// Width is how many columns of a terminal a clean text takes.
// The text has to be clean: what steers a terminal has no width.
func Width(text string) int {
	if ascii(text) {
		return len(text)
	}
	return uniseg.StringWidth(text)
}

// ascii tells whether each byte is a column of its own, so that nothing has to be measured.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Truncate shortens a clean text to a width, and says so by an ellipsis.
// The width is 1 at least.
func Truncate(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	head, _ := split(text, width-1)
	return head + "…"
}

// split parts a text behind the last character that fits into the width.
func split(text string, width int) (head, rest string) {
	used, end, state := 0, 0, -1
	for rest = text; rest != ""; {
		var cluster string
		var w int
		// A character and what combines with it stay together.
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used += w; used > width {
			break
		}
		end += len(cluster)
	}
	return text[:end], text[end:]
}

// Wrap breaks a clean text into lines of a width, at spaces where there are some; 0 breaks nothing.
func Wrap(text string, width int) []string {
	if width <= 0 || Width(text) <= width {
		return []string{text}
	}
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		w := Width(word)
		if line != "" && used+1+w > width {
			lines, line, used = append(lines, line), "", 0
		}
		// A word that is longer than a line is broken where the line ends.
		if w > width {
			for head, rest := split(word, width); head != "" && rest != ""; head, rest = split(word, width) {
				lines, word = append(lines, head), rest
			}
			w = min(Width(word), width)
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+w
	}
	return append(lines, line)
}

// Pad fills a clean text up to a width.
func Pad(text string, width int) string { return text + strings.Repeat(" ", max(0, width-Width(text))) }
