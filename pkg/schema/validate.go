package schema

import (
	"bytes"
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
	p := validation{budget: budget{ctx: ctx, dec: jsontext.NewDecoder(bytes.NewBuffer(input)), left: v.values, most: v.values}, nulls: v.nulls}
	err := p.value(v.root)
	if err == nil {
		if _, end := p.dec.ReadToken(); !errors.Is(end, io.EOF) {
			err = &jsontext.SyntacticError{ByteOffset: p.dec.InputOffset(), Err: errTrailing}
		}
	}
	if err != nil {
		return unreadable(err, len(input))
	}
	return p.found.fault()
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
	found  Violations
	needed bool // the value that is read next is a required member
	nulls  bool // an optional member may be null
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
	case n.kind == "string" && kind == '"':
		return p.text(n)
	case n.numbers && kind == '0':
		return p.digits()
	case n.kind == "integer" && kind == '0':
		return p.integer(n)
	case n.kind == "boolean" && (kind == 't' || kind == 'f'):
		return p.skip()
	}
	var raw jsontext.Value
	var hint string
	var err error
	if kind == '{' || kind == '[' {
		err = p.skip() // which may be large
	} else if raw, err = p.scalar(); err == nil {
		hint = fixHint(n.kind, kind, raw)
		if kind == 'n' && !p.needed {
			hint = ": leave it out when there is nothing to say"
		}
	}
	if err != nil {
		return err
	}
	p.report("type", "must be %s, not %s%s", article(n.kind), kindName(kind), hint)
	return nil
}

// fixHint says how a scalar of another type is written as what it has to be.
func fixHint(want string, kind jsontext.Kind, raw []byte) string {
	text := strings.Trim(string(raw[:min(len(raw), 32)]), `"`)
	_, err := strconv.ParseInt(text, 10, 64)
	switch {
	case kind == 'n':
		return ""
	case want == "integer" && kind == '"' && err == nil, want == "boolean" && kind == '"' && (text == "true" || text == "false"):
		return ": write " + text + " without quotes"
	case want == "string" && kind == '0' && err == nil:
		return `: write "` + text + `"`
	case want == "array":
		return ": write [value]"
	}
	return ""
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
	for p.dec.PeekKind() != '}' {
		raw, err := p.dec.ReadValue()
		if err == nil {
			err = p.named()
		}
		if err != nil {
			return err
		}
		m := n.properties[string(raw[1:len(raw)-1])]
		if m == nil && bytes.IndexByte(raw, '\\') >= 0 {
			name, err := jsontext.AppendUnquote(nil, raw)
			if err != nil {
				return err
			}
			m = n.properties[string(name)]
		}
		if m == nil {
			wraps, err := p.unknown(n, raw)
			if err != nil {
				return err
			}
			wrapped = wrapped || wraps
			continue
		}
		if m.required >= 0 {
			seen |= 1 << m.required
		}
		p.needed = m.required >= 0
		if p.nulls && !p.needed && p.dec.PeekKind() == 'n' {
			if err := p.skip(); err != nil {
				return err
			}
			continue
		}
		if err := p.value(m.node); err != nil {
			return err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for i, name := range n.required {
		if seen&(1<<i) == 0 && !wrapped {
			p.reportMember(name, "required", "is required")
		}
	}
	return nil
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
		if nearest := Nearest(name, n.names); nearest != "" {
			here = "did you mean " + nearest + "? " + strings.ToUpper(here[:1]) + here[1:]
		}
		p.report("additionalProperties", "is not a property of this input; %s", here)
	}
	return wraps, nil
}

// digits judges a number that stands for its digits.
func (p *validation) digits() error {
	raw, err := p.scalar()
	if err != nil {
		return err
	}
	if _, ok := Int64(raw); !ok {
		p.report("type", "must be a string, or a whole number of 64 bits")
	}
	return nil
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
	if _, err := p.dec.ReadToken(); err != nil {
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
func (p *validation) text(n *node) error {
	raw, err := p.scalar()
	if err != nil {
		return err
	}
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
		p.report("enum", "must be one of %s", strings.Join(n.enum, ", "))
	}
	if n.pattern != nil && !n.pattern.Match(plain) {
		p.report("pattern", "must match %s", n.pattern)
	}
	if n.format != "" {
		if f := formats[n.format]; !f.holds(string(plain)) {
			p.report("format", "%s", f.message)
		}
	}
	return nil
}

// integer judges a number that has to be whole and to fit into 64 bits.
func (p *validation) integer(n *node) error {
	raw, err := p.scalar()
	if err != nil {
		return err
	}
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
	return nil
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
