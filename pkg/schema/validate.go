package schema

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/fault"
)

// Validate judges one JSON value in one pass: strict JSON (UTF-8, no duplicate
// names, nothing after it), its bounds (MaxMembers, MaxDepth, the values of Bound)
// and the schema. It returns an E_VALIDATION fault with every violation in the order
// of the text, or nil; text that is no JSON or goes beyond a bound is read up to
// there, and that is the one violation. When ctx ends it stops with that.
func (v *Validator) Validate(ctx context.Context, input []byte) *fault.Error {
	_, f := v.judge(ctx, input)
	return f
}

// judge is Validate, and says what of a valid input is to be read otherwise than it is written.
func (v *Validator) judge(ctx context.Context, input []byte) ([]mend, *fault.Error) {
	names := &names{}
	p, err := v.read(ctx, input, names)
	for errors.Is(err, errSuspected) {
		names.again()
		p, err = v.read(ctx, input, names)
	}
	if err != nil {
		return nil, unreadable(err, len(input))
	}
	return p.mends, p.found.fault()
}

// read reads an input to its end, or to errSuspected.
func (v *Validator) read(ctx context.Context, input []byte, names *names) (*validation, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(input), jsontext.AllowDuplicateNames(true))
	p := &validation{budget: budget{ctx: ctx, dec: dec, left: v.values, most: v.values, names: names}, nulls: v.nulls, lenient: v.lenient}
	err := p.value(v.root)
	if err == nil {
		if _, end := p.dec.ReadToken(); !errors.Is(end, io.EOF) {
			err = &jsontext.SyntacticError{ByteOffset: p.dec.InputOffset(), Err: errTrailing}
		}
	}
	return p, err
}

var errTrailing = errors.New("more text after the value")

// unreadable is the fault of an input of this length that was not read to its end.
func unreadable(err error, length int) *fault.Error {
	var over boundExceeded
	switch {
	case err == nil:
		return nil
	case errors.As(err, &over):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.DB, "The call ended before its input was read. Try again in a moment.").Because(err)
	default:
		over.Violation = notJSON(err, length)
	}
	return Invalid(over.Path, over.Rule, "%s", over.Message)
}

// notJSON is the violation of text that the decoder could not read.
func notJSON(err error, length int) Violation {
	v := Violation{Rule: "json", Message: "must be one strict JSON value"}
	var syntactic *jsontext.SyntacticError
	switch {
	case length == 0:
		v.Message = "must be one JSON object; the body is empty (send {} when there is nothing to say)"
	case errors.As(err, &syntactic):
		v.Path = string(syntactic.JSONPointer)
		v.Message = fmt.Sprintf("is not strict JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		v.Message = "is not strict JSON: the text ends too early"
	}
	return v
}

// validation is the state of one Validate. It keeps the violations that are listed and
// counts the others: a body of 32 MiB can hold millions.
type validation struct {
	budget
	found   Violations
	needed  bool // the value that is read next is a required member
	nulls   bool // an optional member may be null
	lenient bool
	mends   []mend
}

// report is about the value that was read last.
func (p *validation) report(rule, format string, args ...any) {
	p.reportMember("", rule, format, args...)
}

// reportMember is about a member of that value; "" is the value itself.
func (p *validation) reportMember(name, rule, format string, args ...any) {
	if p.found.Full() {
		p.found.count++ // without a path made for it
		return
	}
	path := p.dec.StackPointer()
	if name != "" {
		path = path.AppendToken(name)
	}
	p.found.Add(string(path), rule, format, args...)
}

// value judges the next value by a schema. Its error is of text that cannot be read further; violations are reported.
func (p *validation) value(n *node) error {
	kind := p.dec.PeekKind()
	switch {
	case n.kind == "object" && kind == '{':
		return p.object(n)
	case n.kind == "array" && kind == '[':
		return p.array(n)
	case kind == '{' || kind == '[':
		if err := p.skip(); err != nil { // which may be large
			return err
		}
		hint := ""
		if n.kind == "array" && n.items != nil && n.items.kind == "object" {
			hint = ": write [{...}]"
		}
		p.report("type", "must be %s, not %s%s", article(n.kind), kindName(kind), hint)
		return nil
	}
	raw, err := p.scalar()
	if err != nil {
		return err
	}
	return p.judgeScalar(n, kind, raw)
}

// judgeScalar judges a value that has been read, and is neither a list nor an object.
func (p *validation) judgeScalar(n *node, kind jsontext.Kind, raw jsontext.Value) error {
	switch {
	case n.kind == "string" && kind == '"':
		return p.text(n, raw)
	case n.kind == "integer" && kind == '0':
		p.integer(n, raw)
		return nil
	case n.kind == "boolean" && (kind == 't' || kind == 'f'):
		return nil
	}
	if text, ok := meant(n, kind, raw); ok && p.mendLast(raw, text) {
		raw = jsontext.Value(text)
		return p.judgeScalar(n, raw.Kind(), raw)
	}
	if isItem(n, kind, raw) && p.mendLast(nil, "[") {
		begin := &p.mends[len(p.mends)-1].from
		*begin -= int64(len(raw))
		p.mends[len(p.mends)-1].to = *begin
		err := p.judgeScalar(n.items, kind, raw)
		p.mendLast(nil, "]")
		return err
	}
	hint := ""
	switch {
	case p.found.Full(): // no more is looked for than is told
	case kind != 'n':
		hint = fixHint(n, kind, raw)
	case !p.needed:
		hint = ": leave it out when there is nothing to say"
	}
	p.report("type", "must be %s, not %s%s", article(n.kind), kindName(kind), hint)
	return nil
}

func article(kind string) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "an array"
	}
}

// object judges an object: its members by name, what is missing, and what is not known.
func (p *validation) object(n *node) error {
	if n.properties == nil && !n.closed {
		return p.skip()
	}
	if err := p.open(); err != nil {
		return err
	}
	var seen uint64
	wrapped := false
	nothing := removal{from: p.dec.InputOffset()}
	for p.dec.PeekKind() != '}' {
		raw, err := p.dec.ReadValue()
		if err == nil {
			err = p.named(raw)
		}
		if err != nil {
			return err
		}
		begin := p.dec.InputOffset() - int64(len(raw))
		m, err := n.member(raw)
		if err != nil {
			return err
		}
		if m == nil {
			nothing.stays(p, begin)
			wraps, err := p.unknown(n, raw)
			if err != nil {
				return err
			}
			nothing.from, wrapped = p.dec.InputOffset(), wrapped || wraps
			continue
		}
		if m.required >= 0 {
			seen |= 1 << m.required
		}
		p.needed = m.required >= 0
		if p.standsForNothing() {
			err = nothing.skip(p)
		} else {
			nothing.stays(p, begin)
			err = p.value(m.node)
		}
		if err != nil {
			return err
		}
		nothing.from = p.dec.InputOffset()
	}
	if err := p.close(); err != nil {
		return err
	}
	for i, name := range n.required {
		if seen&(1<<i) == 0 && !wrapped {
			p.reportMember(name, "required", "is required")
		}
	}
	return nil
}

// member is the property that a name in quotes names; nil for none.
func (n *node) member(quoted []byte) (*member, error) {
	m := n.properties[string(quoted[1:len(quoted)-1])]
	if m == nil && bytes.IndexByte(quoted, '\\') >= 0 {
		name, err := jsontext.AppendUnquote(nil, quoted)
		return n.properties[string(name)], err
	}
	return m, nil
}

// wrappers are the names under which other protocols send the input of a call.
var wrappers = map[string]bool{"input": true, "arguments": true, "args": true, "params": true, "parameters": true, "body": true,
	"data": true, "payload": true}

// unknown judges a member that the schema does not have, whose name has been read; wraps says that it holds the whole input.
func (p *validation) unknown(n *node, quoted []byte) (wraps bool, err error) {
	if !n.closed {
		return false, p.skip()
	}
	name := string(quoted[1 : len(quoted)-1][:min(len(quoted)-2, 65)]) // the decoder's bytes do not last
	wraps = p.dec.StackDepth() == 1 && wrappers[strings.ToLower(name)] && p.dec.PeekKind() == '{'
	if err := p.skip(); err != nil {
		return false, err
	}
	here := "it has no properties"
	if len(n.names) > 0 {
		here = "here it has " + strings.Join(n.names, ", ")
	}
	switch {
	case p.found.Full(): // no more is looked for than is told
		p.report("", "")
	case wraps:
		p.report("additionalProperties", "wraps the input: send the fields themselves as the body; %s", here)
	default:
		if hint := cmp.Or(otherwise(name, n.properties), meantBy(Nearest(name, n.names))); hint != "" {
			here = hint + " " + strings.ToUpper(here[:1]) + here[1:]
		}
		p.report("additionalProperties", "is not a property of this input; %s", here)
	}
	return wraps, nil
}

// array judges each item, and then how many there were.
func (p *validation) array(n *node) error {
	if err := p.open(); err != nil {
		return err
	}
	count := 0
	for p.dec.PeekKind() != ']' {
		count++
		var err error
		if n.items == nil {
			err = p.skip()
		} else {
			err = p.value(n.items)
		}
		if err != nil {
			return err
		}
	}
	if err := p.close(); err != nil {
		return err
	}
	if count < n.minItems {
		p.report("minItems", "must hold at least %d, not %d", n.minItems, count)
	}
	if count > n.maxItems {
		p.report("maxItems", "must hold at most %d, not %d", n.maxItems, count)
	}
	return nil
}

// text judges a string; lengths count code points of what is unescaped.
func (p *validation) text(n *node, raw jsontext.Value) (err error) {
	plain := raw[1 : len(raw)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		if plain, err = jsontext.AppendUnquote(nil, raw); err != nil {
			return err
		}
	}
	if n.minLength > 0 || n.maxLength < math.MaxInt {
		switch length := utf8.RuneCount(plain); {
		case length < n.minLength:
			p.report("minLength", "must have at least %d characters, not %d", n.minLength, length)
		case length > n.maxLength:
			p.report("maxLength", "must have at most %d characters, not %d", n.maxLength, length)
		}
	}
	if n.enum != nil && !slices.Contains(n.enum, string(plain)) {
		if value, ok := inCase(n.enum, string(plain)); ok && p.mendLast(raw, strconv.Quote(value)) {
			return nil
		}
		p.report("enum", "must be one of %s", strings.Join(n.enum, ", "))
	}
	if n.pattern != nil && !n.pattern.Match(plain) {
		p.report("pattern", "must match %s", n.pattern)
	}
	if n.format != "" {
		if f := formats[n.format]; !f.holds(string(plain)) {
			p.report("format", "%s%s", f.message, p.formatHint(n, plain))
		}
	}
	return nil
}

// integer judges a number that has to be whole and to fit into 64 bits.
func (p *validation) integer(n *node, raw []byte) {
	value, whole := wholeNumber(raw)
	switch {
	case !whole:
		p.report("type", "must be an integer, not a number with a fraction")
	case value == nil && raw[0] == '-':
		p.report("minimum", "must fit into 64 bits")
	case value == nil:
		p.report("maximum", "must fit into 64 bits")
	case n.minimum != nil && float64(*value) < *n.minimum:
		p.report("minimum", "must be at least %s", number(*n.minimum))
	case n.maximum != nil && float64(*value) > *n.maximum:
		p.report("maximum", "must be at most %s", number(*n.maximum))
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// wholeNumber reads a JSON number that may be written 12, 12.0 or 1.2e1, exactly, in
// time linear in its length. The value is nil when it is whole but does not fit into
// an int64.
func wholeNumber(raw []byte) (value *int64, whole bool) {
	if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return &i, true
	}
	text, negative := bytes.CutPrefix(raw, []byte("-"))
	significand, exponentText := text, []byte("0")
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		significand, exponentText = text[:i], text[i+1:]
	}
	integer, fraction, _ := bytes.Cut(significand, []byte("."))
	// The number is digits × 10^exponent; digits neither begin nor end with 0.
	digits := append(append(make([]byte, 0, len(significand)), integer...), fraction...)
	trimmed := bytes.TrimRight(digits, "0")
	digits, dropped := bytes.TrimLeft(trimmed, "0"), len(digits)-len(trimmed)
	if len(digits) == 0 {
		return new(int64), true
	}
	exponent, err := strconv.Atoi(string(exponentText))
	if err != nil || exponent != int(int32(exponent)) { // far beyond what the digits of a body can make up for
		return nil, exponentText[0] != '-'
	}
	if exponent += dropped - len(fraction); exponent < 0 {
		return nil, false
	}
	if len(digits)+exponent > 19 {
		return nil, true
	}
	sign := ""
	if negative {
		sign = "-"
	}
	i, err := strconv.ParseInt(sign+string(digits)+strings.Repeat("0", exponent), 10, 64)
	if err != nil {
		return nil, true
	}
	return &i, true
}
