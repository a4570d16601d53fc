// Package manual writes what a gateway says of a tool as a page for a person, with the command that calls it.
package manual

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hub.internal/services/client"
	"hub.internal/services/client/output"
)

const (
	// readable is the width of text where a line could be longer.
	readable = 100
	// maxDepth is how far fields within fields are shown.
	maxDepth = 4
)

// page is one on its way.
type page struct {
	// The page so far, the screen that it is for, and how wide its lines may be.
	b      bytes.Buffer
	screen output.Screen
	width  int
}

// Write writes the page of a tool: what it does, its fields, its answer, its errors, its limits, and calls of it.
// Texts are the gateway's and are sanitized: none steers the terminal.
func Write(w io.Writer, s output.Screen, d *client.Detail) error {
	p := &page{screen: s, width: readable}
	if s.Width > 0 {
		p.width = min(readable, s.Width)
	}
	p.head(d)
	p.fields(d.Input)
	p.answer(d.Output)
	var errs, limits [][2]string
	for _, e := range d.Errors {
		errs = append(errs, [2]string{string(e.Code), e.Reason})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Limits)) {
		limits = append(limits, [2]string{name, d.Limits[name].String()})
	}
	p.pairs("Errors", errs)
	p.pairs("Limits", limits)
	p.examples(d)
	_, err := w.Write(p.b.Bytes())
	return err
}

// head writes the tool's name, its facts in one line, and its description.
func (p *page) head(d *client.Detail) {
	facts := []string{d.Category, "scope " + d.Scope, "reads"}
	if d.Write {
		facts[2] = "writes: every call has an Idempotency-Key"
	}
	if !d.Allowed {
		facts = append(facts, "not allowed to this key")
	}
	p.b.WriteString(p.screen.Bold(output.Sanitize(d.Name)) + "\n")
	p.text("", strings.Join(facts, " · "))
	p.b.WriteByte('\n')
	p.text("", d.Description)
}

// item writes a name and what is said of it.
// The text begins on the line of the name where it has room, and goes on below it, indented.
func (p *page) item(indent, name, text string) {
	head := indent + output.Sanitize(name) + "  "
	lines := output.Wrap(output.Sanitize(text), p.width-len(indent)-4)
	if output.Width(head+lines[0]) <= p.width {
		p.b.WriteString(head + lines[0] + "\n")
		lines = lines[1:]
	} else {
		p.b.WriteString(indent + output.Sanitize(name) + "\n")
	}
	for _, line := range lines {
		p.b.WriteString(indent + "    " + line + "\n")
	}
}

// text writes a paragraph behind an indent.
func (p *page) text(indent, text string) {
	for _, line := range output.Lines(text) {
		for _, part := range output.Wrap(line, p.width-len(indent)) {
			p.b.WriteString(indent + part + "\n")
		}
	}
}

// heading begins a section.
func (p *page) heading(text string) { p.b.WriteString("\n" + p.screen.Bold(text) + "\n") }

// fields writes the section of the input's fields.
func (p *page) fields(s *client.Schema) {
	p.heading("Fields")
	if len(s.Properties) == 0 {
		p.text("  ", "none")
	}
	p.properties(s, "  ", maxDepth)
}

// properties writes an item for each field, and below it those of objects within it; left is how many levels may still follow.
// A schema that holds itself would not end otherwise.
func (p *page) properties(s *client.Schema, indent string, left int) {
	if left == 0 {
		return
	}
	for _, of := range s.Properties {
		p.item(indent, of.Name, strings.Join(facts(of.Schema, s.Requires(of.Name)), ", "))
		if of.Schema.Description != "" {
			p.text(indent+"    ", of.Schema.Description)
		}
		p.properties(of.Schema, indent+"    ", left-1)
		if of.Schema.Items != nil {
			p.properties(of.Schema.Items, indent+"    ", left-1)
		}
	}
}

// facts are the type of a field, its bounds, its default, and whether it has to be there.
func facts(s *client.Schema, required bool) []string {
	all := []string{typeText(s)}
	if len(s.Enum) > 0 {
		all = append(all, "one of "+values(s.Enum))
	}
	if s.Items != nil && len(s.Items.Enum) > 0 {
		all = append(all, "each one of "+values(s.Items.Enum))
	}
	if s.Format != "" {
		all = append(all, s.Format)
	}
	for _, bound := range []struct {
		least, most json.Number
		of          string
	}{{s.Minimum, s.Maximum, ""}, {s.MinLength, s.MaxLength, " character"}, {s.MinItems, s.MaxItems, " item"}} {
		if text := boundsText(bound.least, bound.most); text != "" {
			// "at least 1 item", and "1 to 5 items".
			if bound.of != "" && !strings.HasSuffix(text, " 1") {
				text += bound.of + "s"
			} else {
				text += bound.of
			}
			all = append(all, text)
		}
	}
	if s.Pattern != "" {
		all = append(all, "like "+s.Pattern)
	}
	if len(s.Default) > 0 {
		all = append(all, "default "+value(s.Default))
	}
	if required {
		all = append(all, "required")
	}
	return all
}

// boundsText says between which numbers something is, or "" without a bound.
func boundsText(least, most json.Number) string {
	switch {
	case least != "" && most != "":
		return least.String() + " to " + most.String()
	case least != "":
		return "at least " + least.String()
	case most != "":
		return "at most " + most.String()
	}
	return ""
}

// typeText is the type of a value: array of object.
func typeText(s *client.Schema) string {
	name := strings.Join(s.Type, " or ")
	switch {
	case s.Type.Is("array") && s.Items != nil && len(s.Items.Type) > 0:
		return name + " of " + typeText(s.Items)
	case name == "":
		return "any"
	}
	return name
}

// values are the texts of an enum with spaces between them.
func values(all []json.RawMessage) string {
	texts := make([]string, len(all))
	for i, raw := range all {
		texts[i] = value(raw)
	}
	return strings.Join(texts, " ")
}

// value is a text without its quotes, or JSON.
func value(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// answer writes the members of the answer, each alternative where a tool answers one of several.
// Only the names of what is within are listed: the schema itself is hub show --json.
func (p *page) answer(s *client.Schema) {
	if s == nil {
		return
	}
	p.heading("Answer")
	// A tool with one form of answer has Properties of its own.
	alternatives := s.AnyOf
	if len(s.Properties) > 0 {
		alternatives = []*client.Schema{s}
	}
	for i, one := range alternatives {
		if i > 0 {
			p.text("  ", "or")
		}
		for _, of := range one.Properties {
			text := typeText(of.Schema)
			within := of.Schema
			if within.Items != nil {
				within = within.Items
			}
			if names := within.Properties.Names(); len(names) > 0 {
				text += ": " + strings.Join(names, ", ")
			}
			p.item("  ", of.Name, text)
		}
	}
}

// pairs writes names with what they mean, which stands beside them where there is room.
func (p *page) pairs(heading string, all [][2]string) {
	widest := 0
	for _, pair := range all {
		widest = max(widest, output.Width(output.Sanitize(pair[0])))
	}
	if widest == 0 {
		return
	}
	p.heading(heading)
	// A name that is longer pushes its text to the right, on its own line alone.
	widest = min(widest, 30)
	for _, pair := range all {
		head := "  " + output.Pad(output.Sanitize(pair[0]), widest) + "  "
		for _, part := range output.Wrap(output.Sanitize(pair[1]), max(p.width-output.Width(head), 16)) {
			p.b.WriteString(strings.TrimRight(head+part, " ") + "\n")
			head = strings.Repeat(" ", widest+4)
		}
	}
}

// examples are commands, whole, so that they can be copied: a line of them may be longer than the terminal's.
func (p *page) examples(d *client.Detail) {
	if len(d.Examples) == 0 {
		return
	}
	p.heading("Examples")
	for _, e := range d.Examples {
		p.text("  ", "# "+e.Title)
		p.b.WriteString("  " + output.Sanitize(Command(&d.Tool, e.Request)) + "\n")
	}
}

// Command is the command line that calls a tool with an input.
// What cannot be written as arguments is said by -, which reads the input from standard input.
func Command(t *client.Tool, request json.RawMessage) string {
	words := []string{"hub", "call", quote(t.Name)}
	args := arguments(t.Input, request)
	if args == nil && string(bytes.TrimSpace(request)) != "{}" {
		return fmt.Sprintf("hub call %s -", quote(t.Name))
	}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}
