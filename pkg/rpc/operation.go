package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// prefix is where operations are.
const prefix = "/internal/"

// Declaration is what New needs beside the function.
type Declaration struct {
	// Path begins with /internal/, such as /internal/drafts/get.
	Path string
	// Takes says who may call.
	Takes caller.Rule
	// MaxBody bounds the body; 0 means tool.DefaultMaxBody.
	MaxBody int64
}

// Operation is what a service does for its neighbours: declared once, with its two ends typed.
type Operation struct {
	// Spec is its part of the manifest.
	Spec tool.OperationSpec

	takes    caller.Rule
	maxBody  int64
	endpoint endpoint.Endpoint
}

// New binds a declaration to a typed function. Unlike a tool an operation ignores members that it
// does not know, because the JSON between services only grows and a neighbour may be ahead. It
// panics when the declaration contradicts itself: a program with a broken one must not start.
func New[In, Out any](d Declaration, do func(context.Context, In) (Out, error)) Operation {
	if !strings.HasPrefix(d.Path, prefix) || len(d.Takes) == 0 {
		panic(fmt.Sprintf("operation %q: it has to be below %s and to say whom it takes", d.Path, prefix))
	}
	o := Operation{takes: d.Takes, maxBody: d.MaxBody, Spec: tool.OperationSpec{Path: d.Path, Callers: slices.Sorted(maps.Keys(d.Takes)),
		Input: schema.Encode(schema.Of[In]()), Output: schema.Encode(schema.Of[Out]())}}
	if o.maxBody == 0 {
		o.maxBody = tool.DefaultMaxBody
	}
	name := o.Name()
	o.endpoint = func(ctx context.Context, request any) (any, error) {
		var in In
		// The decoder's error may quote the input, and the input may be a secret.
		if json.Unmarshal(request.(*tool.Call).Input, &in) != nil {
			return nil, fault.New(fault.Validation, "The body is not the JSON that %s takes.", name)
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false) // nothing here is a page, and mails are full of <
		if err := encoder.Encode(out); err != nil {
			return nil, fmt.Errorf("encode answer of %s: %w", name, err)
		}
		return &tool.Result{Head: tool.Head{Count: 1}, Data: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, nil
	}
	return o
}

// Manifest is what a service tells the gateway: its tools in the order of their declaration, what
// it does for neighbours, and its part of the console.
func Manifest(service string, tools []tool.Tool, operations []Operation, console ...tool.Route) tool.Manifest {
	m := tool.Manifest{Service: service, Tools: make([]tool.Spec, len(tools)), Console: console}
	for i, t := range tools {
		m.Tools[i] = t.Spec
	}
	for _, o := range operations {
		m.Operations = append(m.Operations, o.Spec)
	}
	return m
}

// Name is that in spans, metrics and messages: the path without /internal/ and with dots.
func (o Operation) Name() string {
	return strings.ReplaceAll(strings.TrimPrefix(o.Spec.Path, prefix), "/", ".")
}
