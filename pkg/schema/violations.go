package schema

import (
	"encoding/json"
	"fmt"

	"hub.internal/pkg/fault"
)

// MaxViolations is how many violations an answer lists.
const MaxViolations = 50

// Violation is one way in which an input breaks its schema, or a rule of the domain.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) to the offending value.
	Path string `json:"path"`
	// Rule is the schema keyword, the name of the domain's rule, or "json" for text that is not
	// strict JSON.
	Rule string `json:"rule"`
	// Message goes on from the value's name: "must be at most 200".
	Message string `json:"message"`
}

// Violations collects what is wrong with an input: all are counted, the first MaxViolations kept.
// The zero value holds none.
type Violations struct {
	list  []Violation
	count int
}

// Add adds a violation.
func (v *Violations) Add(path, rule, format string, args ...any) {
	if v.count++; v.count <= MaxViolations {
		v.list = append(v.list, Violation{path, rule, fmt.Sprintf(format, args...)})
	}
}

// Full tells that another violation would be counted and no longer kept.
func (v *Violations) Full() bool { return v.count >= MaxViolations }

// List returns the violations that are kept, at most MaxViolations.
func (v *Violations) List() []Violation { return v.list }

// Err is nil without a violation, else an E_VALIDATION fault that lists those kept in
// details.violations.
func (v *Violations) Err() error {
	if f := v.fault(); f != nil {
		return f
	}
	return nil
}

// fault is Err as a fault; its message tells the first violation, and how many more there are.
func (v *Violations) fault() *fault.Error {
	if v.count == 0 {
		return nil
	}
	first := v.list[0]
	at := first.Path
	if at == "" {
		at = "the input"
	}
	message := fmt.Sprintf("%s %s.", at, first.Message)
	if v.count > 1 {
		message = fmt.Sprintf("%s (%d more: see details.violations)", message, v.count-1)
	}
	return fault.New(fault.Validation, "%s", message).With(map[string]any{"violations": v.list})
}

// Invalid is the fault of a single violation.
func Invalid(path, rule, format string, args ...any) *fault.Error {
	var v Violations
	v.Add(path, rule, format, args...)
	return v.fault()
}

// ViolationsOf returns the violations that an E_VALIDATION lists, also one that came from a
// neighbour; none for any other error.
func ViolationsOf(err error) []Violation {
	f := fault.From(err)
	if err == nil || f.Code != fault.Validation {
		return nil
	}
	var details struct {
		Violations []Violation `json:"violations"`
	}
	b, encodeErr := json.Marshal(f.Details)
	if encodeErr != nil || json.Unmarshal(b, &details) != nil {
		return nil
	}
	return details.Violations
}
