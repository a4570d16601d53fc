package audit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
)

const (
	// maxMessage and maxValue bound what is kept of a message, and of each text in its details, in characters.
	maxMessage, maxValue = 500, 200
	// maxValues bounds the values of the details, of each list and in all; maxDepth how deep they lie.
	maxValues, maxDepth = 60, 6
)

// Refusal is the Detail of a call that was refused or failed: what its caller was told, within 500 characters and 60 values. The mail
// addresses in it are cut to their domain: whose they are is in the row that they are about.
type Refusal struct {
	Refused *Told `json:"refused,omitempty"`
	// Address is where the call came from, for one without a credential.
	Address string `json:"address,omitempty"`
}

// Told is what the caller of a call was told.
type Told struct {
	Message string `json:"message"`
	// Details are error.details of the answer: the rule and the path that was broken, the missing scope, what stood in the way.
	Details any `json:"details,omitempty"`
}

// ToldOf is what the caller was told of an error; nil for none.
func ToldOf(err error) *Told {
	if err == nil {
		return nil
	}
	f := fault.From(err)
	t := &Told{Message: withoutAddresses(f.Message, maxMessage)}
	if b, err := json.Marshal(f.Details); f.Details != nil && err == nil {
		var details any
		if json.Unmarshal(b, &details) == nil {
			left := maxValues
			t.Details = bounded(details, maxDepth, &left)
		}
	}
	return t
}

// address is a mail address, as far as it has to be recognized: the part before the @ is cut.
var address = regexp.MustCompile(`[^\s"'<>()\[\]{},;:=]+@([\pL\pN.-]+)`)

// withoutAddresses is the beginning of a text, in which mail addresses have their domain alone.
func withoutAddresses(s string, most int) string {
	return text.Shorten(address.ReplaceAllString(text.HeadBytes(s, 8*most), "…@$1"), most)
}

// bounded is a JSON value with its texts shortened and what is too much left out, which "…" stands for.
func bounded(v any, depth int, left *int) any {
	*left--
	switch x := v.(type) {
	case string:
		return withoutAddresses(x, maxValue)
	case []any:
		out := []any{}
		for i, one := range x {
			if *left <= 0 || depth == 0 {
				return append(out, fmt.Sprintf("… %d more", len(x)-i))
			}
			out = append(out, bounded(one, depth-1, left))
		}
		return out
	case map[string]any:
		out := make(map[string]any, min(len(x), maxValues))
		names := make([]string, 0, len(x))
		for name := range x {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			if *left <= 0 || depth == 0 {
				out["…"] = fmt.Sprintf("%d more", len(x)-i)
				return out
			}
			out[withoutAddresses(name, maxValue)] = bounded(x[name], depth-1, left)
		}
		return out
	}
	return v
}
