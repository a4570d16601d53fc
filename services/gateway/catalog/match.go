package catalog

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"hub.internal/pkg/tool"
)

// pathValue is what one element of a path may be: nothing that has to be decoded, and no dots alone.
var pathValue = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

// Match is a route that a request is for, and the values of its path, in order.
type Match struct {
	*Entry
	Values []PathValue
}

// PathValue is a named element of a path, and what a request has there.
type PathValue struct{ Name, Value string }

// Match finds the route of a request: path is as it was sent, and an element that is written in any other
// way than plainly fits nothing. Without a route, allow lists the methods that the path has; nil when
// there is no such path.
func (c *Catalog) Match(method, path string) (m *Match, allow []string) {
	rest, below := strings.CutPrefix(path, tool.RouteRoot)
	if !below {
		return nil, nil
	}
	elements := strings.Split(rest, "/")
	for _, e := range c.current.Load().routes[elements[0]] {
		values, fits := e.fits(elements)
		if !fits {
			continue
		}
		if e.Route.Method == method || e.Route.Reads() && method == http.MethodHead {
			return &Match{e, values}, nil
		}
		if allow = append(allow, e.Route.Method); e.Route.Reads() {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	return nil, slices.Compact(allow)
}

// fits tells whether a request's path is one of the route's, and returns the values of its named elements in order.
func (e *Entry) fits(elements []string) (values []PathValue, fits bool) {
	if len(elements) != len(e.elements) {
		return nil, false
	}
	for i, want := range e.elements {
		name, isValue := tool.Value(want)
		switch {
		case !isValue && want != elements[i]:
			return nil, false
		case isValue && (!pathValue.MatchString(elements[i]) || strings.Trim(elements[i], ".") == ""):
			return nil, false
		case isValue:
			values = append(values, PathValue{name, elements[i]})
		}
	}
	return values, true
}

// same tells whether two paths fit the same requests.
func same(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return compareElements(x, y) == 0 })
}

// ambiguous tells whether a request may fit both paths while each says of some element more than the other.
func ambiguous(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	var moreA, moreB bool
	for i := range a {
		_, valueA := tool.Value(a[i])
		_, valueB := tool.Value(b[i])
		switch {
		case !valueA && !valueB && a[i] != b[i]:
			return false
		case valueA && !valueB:
			moreB = true
		case valueB && !valueA:
			moreA = true
		}
	}
	return moreA && moreB
}

// compareElements puts words before values; values are alike.
func compareElements(a, b string) int {
	_, valueA := tool.Value(a)
	_, valueB := tool.Value(b)
	switch {
	case valueA && valueB:
		return 0
	case valueA:
		return 1
	case valueB:
		return -1
	}
	return strings.Compare(a, b)
}
