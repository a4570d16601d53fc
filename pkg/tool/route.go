package tool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"hub.internal/pkg/schema"
)

// What a credential for a route may be.
const (
	// KeyCredential is a CRM API key.
	KeyCredential = "key"
	// AppCredential is the ServiceJWT of a Connected App, whose user has linked an account.
	AppCredential = "app"
	// AppUnlinkedCredential is the ServiceJWT of a Connected App, whoever its user is to Hub.
	AppUnlinkedCredential = "app-unlinked"
	// NoCredential is none: the route protects itself, and has a limit for each address.
	NoCredential = "none"
)

// What the input and the answer of a route are.
const (
	// JSONForm is an object in the body, and an answer in the envelope.
	JSONForm = ""
	// RawForm is what others say in their own way: see RawRequest and RawAnswer.
	RawForm = "raw"
)

// What a route says of the Idempotency-Key.
const (
	KeyRequired = "required"
	KeyOptional = "optional"
	// KeyIgnored is for what changes nothing, or is harmless to repeat.
	KeyIgnored = "none"
)

// RouteRoot is what every route of the API lies below.
const RouteRoot = "/v1/"

// RouteSpec is what a route of the API says of itself, in the manifest of its owner: a tool with a
// method, a path and statuses of its own. Its input is the body's object with the path's values as
// members; without a body it is made of the query's. So its owner is asked as it is for a tool.
type RouteSpec struct {
	Spec
	Method string `json:"method"`
	// Path begins with /v1/ and a word that belongs to one owner; {orderId} stands for one element,
	// 1 to 128 of A-Z, a-z, 0-9 and -._~, and is a member of the input.
	Path string `json:"path"`
	// Success are the statuses of a success, the usual one first: 200, 201, 202, 303.
	Success []int `json:"success"`
	// Idempotency is what holds for the Idempotency-Key: required, optional or none.
	Idempotency string `json:"idempotency"`
	// Credential is what a caller shows: key, app, app-unlinked or none.
	Credential string `json:"credential"`
	// Form is empty, or raw.
	Form string `json:"form,omitempty"`
}

var (
	routeName    = regexp.MustCompile(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)
	routeWord    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	routeValue   = regexp.MustCompile(`^\{[a-z][A-Za-z0-9]*\}$`)
	routeMethods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	routeSuccess = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusSeeOther}
)

// Elements are those of the path below /v1/: words, and values in braces.
func (s RouteSpec) Elements() []string {
	return strings.Split(strings.TrimPrefix(s.Path, RouteRoot), "/")
}

// Value returns the name of the value that an element of a path stands for; ok is false for a word.
func Value(element string) (name string, ok bool) {
	return strings.Trim(element, "{}"), strings.HasPrefix(element, "{")
}

// Reads tells that the route changes nothing and takes no body.
func (s RouteSpec) Reads() bool { return s.Method == http.MethodGet }

// Check tells what is wrong with the declaration, whose input has this schema. The edge asks it too: a
// manifest is the word of another process.
func (s RouteSpec) Check(input *schema.Schema) error {
	switch {
	case !routeName.MatchString(s.Name) || len(s.Name) > 64:
		return fmt.Errorf("%q cannot be its name: words of a-z and 0-9, with dots", s.Name)
	case s.Description == "":
		return errors.New("a description is needed")
	case (s.Scope == "") != (s.Credential == NoCredential) && s.Credential != AppUnlinkedCredential:
		return fmt.Errorf("the scope cannot be %q for the credential %q", s.Scope, s.Credential)
	case !slices.Contains(routeMethods, s.Method):
		return fmt.Errorf("the method %q is none of %v", s.Method, routeMethods)
	case len(s.Success) == 0 || slices.ContainsFunc(s.Success, func(n int) bool { return !slices.Contains(routeSuccess, n) }):
		return fmt.Errorf("the statuses %v of a success have to be of %v", s.Success, routeSuccess)
	case !slices.Contains([]string{KeyRequired, KeyOptional, KeyIgnored}, s.Idempotency) || s.Reads() && s.Idempotency != KeyIgnored:
		return fmt.Errorf("its Idempotency-Key cannot be %q", s.Idempotency)
	case s.Credential == "":
		return errors.New("it does not say which credential it takes")
	case s.MaxBody <= 0 || s.TimeoutMS <= 0:
		return errors.New("the body and the time have to be bounded")
	case input == nil || input.Type != "object" || input.AdditionalProperties == nil:
		return errors.New("the input must be a closed object")
	}
	if err := s.checkForm(input); err != nil {
		return err
	}
	return s.checkPath(input)
}

func (s RouteSpec) checkPath(input *schema.Schema) error {
	if !strings.HasPrefix(s.Path, RouteRoot) || len(s.Path) > 200 {
		return fmt.Errorf("the path %q is not below %s", s.Path, RouteRoot)
	}
	var values []string
	for i, element := range s.Elements() {
		name, isValue := Value(element)
		switch {
		case isValue && routeValue.MatchString(element) && i > 0 && !slices.Contains(values, name):
			values = append(values, name)
			if member := input.Properties[name]; member == nil || member.Type != "string" || !slices.Contains(input.Required, name) {
				return fmt.Errorf("{%s} of the path is no required string of the input", name)
			}
		case isValue || !routeWord.MatchString(element):
			return fmt.Errorf("the path %q cannot hold %q there", s.Path, element)
		}
	}
	return nil
}

// RouteDeclaration is what NewRoute needs beside the function.
type RouteDeclaration struct {
	Declaration
	Method, Path string
	// Success are the statuses of a success; nil means 200. An answer that says none has the first.
	Success     []int
	Idempotency string
	Credential  string
	Form        string
}

// APIRoute is a declared route of the API: served like a tool, shown below /v1/.
type APIRoute struct {
	Spec RouteSpec
	Tool Tool
}

// NewRoute binds a declaration to a typed function. An answer that is a Result says its own status and
// Location. It panics when the declaration contradicts itself: a program with a broken route must not
// start.
func NewRoute[In, Out any](d RouteDeclaration, do func(context.Context, In) (Out, error)) APIRoute {
	if len(d.Success) == 0 {
		d.Success = []int{http.StatusOK}
	}
	if d.Output == nil {
		d.Output = schema.Of[Out]()
	}
	d.Write = d.Method != http.MethodGet
	spec := RouteSpec{Spec: d.spec(), Method: d.Method, Path: d.Path, Success: d.Success, Idempotency: d.Idempotency,
		Credential: d.Credential, Form: d.Form}
	if err := spec.Check(d.Input); err != nil {
		panic(fmt.Sprintf("route %q: %v", d.Name, err))
	}
	return APIRoute{spec, Tool{Spec: spec.Spec, RecordsItself: d.RecordsItself,
		Endpoint: bind(spec.Spec, d.Input, d.Idempotency, spec.Success[0], do)}}
}

// WithRoutes returns the manifest with these routes.
func (m Manifest) WithRoutes(routes ...APIRoute) Manifest {
	for _, r := range routes {
		m.Routes = append(m.Routes, r.Spec)
	}
	return m
}
