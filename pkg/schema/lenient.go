package schema

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxMends bounds what is kept of a body that is written otherwise than its schema has it; what goes beyond is refused.
const maxMends = fewestValues

// mend is a place of an input, in bytes, and what the schema has there instead.
type mend struct {
	from, to int64
	with     string
}

// Lenient takes what can mean one thing only: a whole number or true and false in quotes, a number for a text, an item without its
// list, an enum's value in another case, and null for an optional member. Decode reads it as the schema has it; what the schema says
// of itself stays as it is.
func (v *Validator) Lenient() { v.lenient = true }

// mended is an input as its schema has it; mends are in the order of the text. It is the input itself when nothing is to mend.
func mended(input []byte, mends []mend) []byte {
	if len(mends) == 0 {
		return input
	}
	out, at := make([]byte, 0, len(input)+len(input)/8), int64(0)
	for _, m := range mends {
		out = append(append(out, input[at:m.from]...), m.with...)
		at = m.to
	}
	return append(out, input[at:]...)
}

// mendLast has something else stand in the place of the value that was read last; false when no more is kept.
func (p *validation) mendLast(raw []byte, with string) bool {
	if !p.lenient || len(p.mends) >= maxMends {
		return false
	}
	end := p.dec.InputOffset()
	p.mends = append(p.mends, mend{end - int64(len(raw)), end, with})
	return true
}

// meant is a scalar of another type as the schema has it, when it can mean one thing only.
func meant(n *node, kind jsontext.Kind, raw []byte) (string, bool) {
	switch text := string(raw[:min(len(raw), 32)]); {
	case n.kind == "integer" && kind == '"':
		text = strings.Trim(text, `"`)
		value, err := strconv.ParseInt(text, 10, 64)
		return text, err == nil && strconv.FormatInt(value, 10) == text
	case n.kind == "boolean" && kind == '"':
		text = strings.ToLower(strings.Trim(text, `"`))
		return text, text == "true" || text == "false"
	case n.kind == "string" && kind == '0' && n.format == "":
		value, ok := Int64(raw)
		return strconv.Quote(strconv.FormatInt(value, 10)), ok
	}
	return "", false
}

// inCase is the value of an enum that a text is but for the case of its letters.
func inCase(enum []string, text string) (string, bool) {
	var found []string
	for _, v := range enum {
		if strings.EqualFold(v, text) {
			found = append(found, v)
		}
	}
	return strings.Join(found, ""), len(found) == 1
}

// isItem tells whether a scalar is the one item of a list rather than something else: a text with a comma may be several.
func isItem(n *node, kind jsontext.Kind, raw []byte) bool {
	return n.kind == "array" && n.minItems < 2 && n.maxItems > 0 &&
		n.items != nil && (n.items.kind == "string" || n.items.kind == "integer") &&
		(kind == '0' || kind == '"' && len(raw) > len(`""`) && !bytes.ContainsAny(raw, `,[\`))
}

// removal takes the members out of an object that stand for nothing, with one comma each.
type removal struct {
	from int64 // where the last member ended, or the object began
	kept bool  // a member that stays has been read
	lead int   // 1 + the place in the mends of what was taken out before the first member that stays
}

// standsForNothing tells that the next value is null in the place of an optional member, which may be left out.
func (p *validation) standsForNothing() bool {
	return !p.needed && (p.nulls || p.lenient && len(p.mends) < maxMends) && p.dec.PeekKind() == 'n'
}

// skip reads such a null, and takes its member out where that is asked for.
func (r *removal) skip(p *validation) error {
	err := p.skip()
	end := p.dec.InputOffset()
	if err != nil || !p.lenient {
		r.stays(p, end)
		return err
	}
	if p.mends = append(p.mends, mend{r.from, end, ""}); !r.kept {
		r.lead = len(p.mends)
	}
	return nil
}

// stays is told of a member that stays, whose name begins here: the comma before the first one goes with what stood there.
func (r *removal) stays(p *validation, begin int64) {
	if !r.kept && r.lead > 0 {
		p.mends[r.lead-1].to = begin
	}
	r.kept = true
}

// fixHint says how a scalar of another type is written as what it has to be.
func fixHint(n *node, kind jsontext.Kind, raw []byte) string {
	text := strings.Trim(string(raw[:min(len(raw), 64)]), `"`)
	whole, err := strconv.ParseInt(text, 10, 64)
	switch {
	case kind == '"' && (n.kind == "array" && strings.HasPrefix(text, "[") || n.kind == "object" && strings.HasPrefix(text, "{")):
		return ": send the JSON itself, not a text that holds it"
	case n.kind == "integer" && kind == '"' && err == nil, n.kind == "boolean" && kind == '"' && (text == "true" || text == "false"):
		return ": write " + text + " without quotes"
	case n.kind == "boolean" && (text == "0" || text == "1"):
		return ": write " + strconv.FormatBool(text == "1")
	case n.format == ISODate && kind == '0':
		return dateHint(text, whole)
	case n.kind == "string" && n.format == "" && kind != '"':
		return `: write "` + text + `"`
	case n.kind == "array":
		return ": write " + listOf(n.items, kind, text)
	}
	return ""
}

// formatHint is fixHint for a text that is not of its format.
func (p *validation) formatHint(n *node, text []byte) string {
	if p.found.Full() || n.format != ISODate {
		return ""
	}
	if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return dateHint(string(text), whole)
	}
	return "; today is " + time.Now().UTC().Format(time.DateOnly)
}

// dateHint is how a date is written that came as a number: 20261126, or the seconds or milliseconds since 1970.
func dateHint(text string, n int64) string {
	if t, err := time.Parse("20060102", text); err == nil {
		return `: write "` + t.Format(time.DateOnly) + `"`
	}
	const from, to = 1e8, 1e10 // 1973 to 2286
	if n >= from*1000 && n < to*1000 {
		n /= 1000
	}
	if n >= from && n < to {
		return `, as of seconds since 1970: write "` + time.Unix(n, 0).UTC().Format(time.RFC3339) + `"`
	}
	return `: write a date such as "2026-01-31"`
}

// listOf is a list with the items that a scalar names.
func listOf(items *node, kind jsontext.Kind, text string) string {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if items != nil && items.kind == "string" || kind == '"' && (items == nil || items.kind != "integer") {
			b, err := json.Marshal(part)
			if err != nil {
				return "[value]"
			}
			part = string(b)
		}
		parts[i] = part
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
