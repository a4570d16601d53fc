// Package tool declares a tool once and derives the rest: a typed function and its
// Spec become one erased go-kit endpoint, and from that value come the manifest,
// routing, validation, the catalog and the tests of every bound. It refuses to know
// any tool by name.
package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// Categories of tools, as the catalog shows them (CONTRACT.md 6.1).
const (
	Explore = "explore"
	Query   = "query"
	Author  = "author"
	Control = "control"
	Admin   = "admin"
)

// DefaultMaxBody and DefaultTimeout hold for a tool that does not say otherwise.
const (
	DefaultMaxBody = 1 << 20
	DefaultTimeout = 10 * time.Second
)

// Spec is what a tool says of itself. It is the wire form of the manifest too, which
// only ever grows: an older gateway reads a newer service's manifest.
type Spec struct {
	Name        string `json:"name"`
	Category    string `json:"category"`
	Description string `json:"description"`
	// Scope is what a credential has to hold.
	Scope string `json:"scope"`
	// Write tools need an Idempotency-Key.
	Write bool `json:"write"`
	// Replaces tells that a write takes the place of what was there: the same call again is not a repetition of the first when
	// another came between. So no key is derived of it for a caller who sends none.
	Replaces bool `json:"replaces,omitempty"`
	// Input is the schema of the request body; bounds are enforced at the edge and again in the service.
	Input json.RawMessage `json:"input_schema"`
	// Output documents data.
	Output json.RawMessage `json:"output_schema"`
	// Errors are the codes that this tool adds to those that any call can answer.
	Errors []ErrorDoc `json:"errors"`
	// Limits are bounds as configured, by name.
	Limits map[string]int64 `json:"limits,omitempty"`
	// Examples are executed by a test.
	Examples []Example `json:"examples"`
	// MaxBody bounds the request body, in bytes.
	MaxBody int64 `json:"max_body"`
	// TimeoutMS is the deadline of a call, in milliseconds.
	TimeoutMS int64 `json:"timeout_ms"`
	// Position is the tool's place in the catalog, from 1 (CONTRACT.md 6.1).
	Position int `json:"position"`
}

// ErrorDoc says why a tool answers a code.
type ErrorDoc struct {
	Code   fault.Code `json:"code"`
	Reason string     `json:"reason"`
	// DetailCodes are the values of details.code beside it, all of them; empty where details have none.
	DetailCodes []string `json:"details_codes,omitempty"`
}

// Example is a request and what it is answered with: data, and their count.
type Example struct {
	Title   string          `json:"title"`
	Count   int             `json:"count"`
	Request json.RawMessage `json:"request"`
	Data    json.RawMessage `json:"answer"`
}

// Timeout is the deadline of a call.
func (s Spec) Timeout() time.Duration { return time.Duration(s.TimeoutMS) * time.Millisecond }

// Call is the erased request of a tool's endpoint.
type Call struct {
	Tool           string
	Input          []byte
	IdempotencyKey string
	// DeriveKey tells that the caller has sent no key: IdempotencyKey is new with each call.
	DeriveKey bool
	// MostBytes is how many bytes of data the caller can read at once; 0 when it has not said.
	MostBytes int
}

// Head is what an answer says beside its data, on every hop from its owner to the caller.
type Head struct {
	// Status is that of a success on a transport that has statuses; 0 means 200.
	Status int
	// Count is the primary row count.
	Count int
	// Replayed tells that the write happened in an earlier call, Age how long ago; 0 is unknown.
	Replayed bool
	Age      time.Duration
	// Location is where the answer of a route is, as a path of Hub's own; empty for none.
	Location string
}

// Result is the erased response: data as it goes to the caller, untouched from here on. A write
// tool answers it by itself, byte for byte the same each time; its declaration says its Output.
type Result struct {
	Head
	Data []byte
	// Release, when there is one, is called when Data has been written.
	Release func()
}

// Counter is an output that knows its primary row count; others count 1.
type Counter interface{ Count() int }

// Raw is an output that has written its own JSON.
type Raw interface{ JSON() []byte }

// Releaser is an output that holds something until it has been written, such as its share of
// the memory for large answers.
type Releaser interface{ Release() }

// Declaration is what New needs beside the function.
type Declaration struct {
	Name, Category, Description, Scope string
	Write                              bool
	// Replaces tells that a write takes the place of what was there (Spec.Replaces).
	Replaces bool
	Input    *schema.Schema
	// Output documents data; nil infers it from Out.
	Output   *schema.Schema
	Errors   []ErrorDoc
	Limits   map[string]int64
	Examples []Example
	MaxBody  int64
	Timeout  time.Duration
	// Position is the tool's place in the catalog, from 1 (CONTRACT.md 6.1).
	Position int
	// RecordsItself tells that the function writes the rows of the audit log, refusals too.
	RecordsItself bool
}

// Tool is a declared tool: its Spec and its endpoint, which takes a Call and answers
// a Result.
type Tool struct {
	Spec     Spec
	Endpoint endpoint.Endpoint
	// RecordsItself tells that the tool writes its own rows of the audit log, refusals too.
	RecordsItself bool
}

// New binds a declaration to a typed function. It panics when the declaration
// contradicts itself: a program with a broken tool must not start.
func New[In, Out any](d Declaration, do func(context.Context, In) (Out, error)) Tool {
	if err := d.check(); err != nil {
		panic(fmt.Sprintf("tool %q: %v", d.Name, err))
	}
	if d.Output == nil {
		d.Output = schema.Of[Out]()
	}
	key := KeyIgnored
	if d.Write {
		key = KeyRequired
	}
	spec := d.spec()
	return Tool{RecordsItself: d.RecordsItself, Spec: spec, Endpoint: bind(spec, d.Input, key, 0, do)}
}

// bind is the endpoint of a function: key is what holds for its Idempotency-Key, status that of an
// answer that says none.
func bind[In, Out any](spec Spec, input *schema.Schema, key string, status int,
	do func(context.Context, In) (Out, error)) endpoint.Endpoint {
	binding := schema.Bind[In](input)
	binding.Bound(spec.MaxBody)
	if status != 0 { // as the edge does: programs call routes, models call tools
		binding.TakeNulls()
	} else {
		binding.Lenient()
	}
	return func(ctx context.Context, request any) (any, error) {
		call := request.(*Call)
		if key != KeyIgnored {
			call.DeriveKey = call.DeriveKey && !spec.Replaces
			held, end, err := keyed(ctx, call, key == KeyRequired)
			if err != nil {
				return nil, err
			}
			defer end()
			ctx = held
		}
		if call.MostBytes > 0 {
			ctx = context.WithValue(ctx, mostBytes{}, call.MostBytes)
		}
		in, f := binding.Decode(ctx, call.Input)
		if f != nil {
			return nil, f
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		r, err := result(out)
		if err != nil {
			return nil, err
		}
		if r.Status == 0 {
			r.Status = status
		}
		return r, nil
	}
}

func (d Declaration) check() error {
	switch {
	case d.Name == "", d.Category == "", d.Description == "", d.Scope == "":
		return errors.New("name, category, description and scope are needed")
	case d.Position < 1:
		return errors.New("position is needed: the place in the catalog")
	case d.Replaces && !d.Write:
		return errors.New("only a write can replace something")
	case d.Input == nil || d.Input.Type != "object" || d.Input.AdditionalProperties == nil:
		return errors.New("the input must be a closed object")
	}
	return nil
}

func (d Declaration) spec() Spec {
	s := Spec{Name: d.Name, Category: d.Category, Description: d.Description, Scope: d.Scope, Write: d.Write, Replaces: d.Replaces,
		Input: schema.Encode(d.Input), Output: schema.Encode(d.Output), Errors: d.Errors, Limits: d.Limits, Examples: d.Examples,
		Position: d.Position, MaxBody: cmp.Or(d.MaxBody, DefaultMaxBody), TimeoutMS: cmp.Or(d.Timeout, DefaultTimeout).Milliseconds()}
	if free(d.Input) { // whose size no other bound tells
		s.Limits = maps.Clone(s.Limits)
		if s.Limits == nil {
			s.Limits = map[string]int64{}
		}
		s.Limits["max_members"], s.Limits["max_values"] = schema.MaxMembers, int64(schema.MaxValues(s.MaxBody))
	}
	if s.Errors == nil {
		s.Errors = []ErrorDoc{}
	}
	if s.Examples == nil {
		s.Examples = []Example{}
	}
	return s
}

// free tells whether an input has an object with members of the caller's choice.
func free(s *schema.Schema) bool {
	if s == nil {
		return false
	}
	return s.Type == "object" && s.Properties == nil && s.AdditionalProperties == nil || free(s.Items) ||
		slices.ContainsFunc(slices.Collect(maps.Values(s.Properties)), free)
}

func result(out any) (*Result, error) {
	if r, ok := out.(Result); ok {
		return &r, nil
	}
	r := &Result{Head: Head{Count: 1}}
	if c, ok := out.(Counter); ok {
		r.Count = c.Count()
	}
	if holder, ok := out.(Releaser); ok {
		r.Release = holder.Release
	}
	if raw, ok := out.(Raw); ok {
		r.Data = raw.JSON()
		return r, nil
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	r.Data = b
	return r, nil
}
