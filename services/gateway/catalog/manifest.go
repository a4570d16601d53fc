package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

const (
	// maxRoutes, maxRouteBody and maxRouteTime bound what a manifest may ask for.
	maxRoutes    = 200
	maxRouteBody = 32 << 20
	maxRouteTime = 2 * time.Minute
	// maxNotifications and maxNotificationBytes bound what it may say of its messages.
	maxNotifications     = 100
	maxNotificationBytes = 256 << 10
)

// Entry is a tool or a route of the API, its owner, and its input's validator.
type Entry struct {
	Spec    tool.Spec
	Service string
	// Route is what a route says beside that; nil for a tool.
	Route *tool.RouteSpec
	// Input is the schema of a route's input; nil for a tool, whose validator is enough.
	Input *schema.Schema
	// elements are those of a route's path, members the names of what a tool's input has.
	elements, members []string
	validator         *schema.Validator
}

// Validate judges an input; the owner judges it again.
func (e *Entry) Validate(ctx context.Context, input []byte) *fault.Error {
	return e.validator.Validate(ctx, input)
}

// KeyRule is what holds for the Idempotency-Key: tool.KeyRequired, tool.KeyOptional or tool.KeyIgnored.
func (e *Entry) KeyRule() string {
	switch {
	case e.Route != nil:
		return e.Route.Idempotency
	case e.Spec.Write:
		return tool.KeyRequired
	}
	return tool.KeyIgnored
}

// Raw tells that it is a route whose requests and answers pass as they are.
func (e *Entry) Raw() bool { return e.Route != nil && e.Route.Form == tool.RawForm }

// owner is a manifest, compiled.
type owner struct {
	sum           [sha256.Size]byte // of the manifest
	tools, routes []*Entry
	console       []*ConsoleRoute
	// finds tells that it is asked for what people look for in the console.
	finds         bool
	notifications *tool.Notifications
}

// compile reads and judges the manifest of a service.
func compile(name string, b []byte) (*owner, error) {
	var m tool.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	if m.Service != name {
		return nil, fmt.Errorf("it names %q", Shown(m.Service))
	}
	o := &owner{sum: sha256.Sum256(b)}
	for _, spec := range m.Tools {
		if slices.ContainsFunc(o.tools, func(e *Entry) bool { return e.Spec.Name == spec.Name }) {
			return nil, fmt.Errorf("tool %s is there twice", spec.Name)
		}
		input, validator, err := compileInput(spec)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
		}
		validator.Lenient()
		o.tools = append(o.tools, &Entry{Spec: spec, Service: name, members: slices.Sorted(maps.Keys(input.Properties)), validator: validator})
	}
	if len(m.Routes) > maxRoutes {
		return nil, fmt.Errorf("it has more than %d routes", maxRoutes)
	}
	for _, route := range m.Routes {
		if err := o.addRoute(name, route); err != nil {
			return nil, fmt.Errorf("route %s: %w", Shown(route.Name), err)
		}
	}
	// Of two that fit a path the one with a word where the other has a value comes first.
	slices.SortStableFunc(o.routes, func(a, b *Entry) int { return slices.CompareFunc(a.elements, b.elements, compareElements) })
	for _, r := range m.Console {
		if slices.ContainsFunc(o.console, func(other *ConsoleRoute) bool { return other.Prefix == r.Prefix }) {
			return nil, fmt.Errorf("console route %q is there twice", r.Prefix)
		}
		if err := checkConsoleRoute(name, r); err != nil {
			return nil, err
		}
		o.console = append(o.console, &ConsoleRoute{r, name})
	}
	o.finds = slices.ContainsFunc(m.Operations, func(s tool.OperationSpec) bool { return s.Path == web.FindPath })
	o.notifications = m.Notifications
	return o, checkNotifications(m.Notifications)
}

// notificationType is the form of the type of a message, which is a member's name in the description of the API.
var notificationType = regexp.MustCompile(`^[a-z]+(\.[a-z_]+){1,5}$`)

// checkNotifications judges what a service says of its messages; nil is none.
func checkNotifications(n *tool.Notifications) error {
	if n == nil {
		return nil
	}
	var body schema.Schema
	switch err := json.Unmarshal(n.Body, &body); {
	case err != nil || body.Type != "object":
		return errors.New("the schema of its notifications is none of an object")
	case len(n.Types) > maxNotifications || len(n.Body)+len(n.Example) > maxNotificationBytes:
		return errors.New("it says too much of its notifications")
	}
	for _, t := range n.Types {
		if !notificationType.MatchString(t.Type) {
			return fmt.Errorf("%q is no type of a notification", Shown(t.Type))
		}
	}
	return nil
}

// compileInput compiles the schema of an input, and bounds what its validator reads to the body that the tool takes.
func compileInput(spec tool.Spec) (*schema.Schema, *schema.Validator, error) {
	var s schema.Schema
	if err := json.Unmarshal(spec.Input, &s); err != nil {
		return nil, nil, fmt.Errorf("input schema: %w", err)
	}
	v, err := schema.Compile(&s)
	if err != nil {
		return nil, nil, err
	}
	v.Bound(spec.MaxBody)
	return &s, v, nil
}

// addRoute judges a route and adds it. Two routes of an owner may not be told apart by a request in two ways: then neither
// order of them would be right.
func (o *owner) addRoute(name string, r tool.RouteSpec) error {
	input, validator, err := compileInput(r.Spec)
	if err != nil {
		return err
	}
	if err := r.Check(input); err != nil {
		return err
	}
	validator.TakeNulls() // programs write null for what they leave out
	if r.MaxBody > maxRouteBody || r.Timeout() > maxRouteTime {
		return errors.New("its body or its time is too large")
	}
	e := &Entry{Spec: r.Spec, Service: name, Route: &r, Input: input, elements: r.Elements(), validator: validator}
	e.Spec.Write = !r.Reads() // whatever it says
	for _, other := range o.routes {
		switch {
		case other.Spec.Name == r.Name:
			return errors.New("it is there twice")
		case ambiguous(other.elements, e.elements), other.Route.Method == r.Method && same(other.elements, e.elements):
			return fmt.Errorf("%s %s cannot be told from %s %s", r.Method, r.Path, other.Route.Method, other.Route.Path)
		}
	}
	o.routes = append(o.routes, e)
	return nil
}
