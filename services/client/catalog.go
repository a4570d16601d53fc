package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"hub.internal/pkg/fault"
)

// Tool is a tool as the catalog lists it for a key.
type Tool struct {
	// Scope is what a key needs for it, Allowed whether this key has that. Write tells that a call needs an
	// Idempotency-Key.
	Name        string  `json:"name"`
	Category    string  `json:"category"`
	Description string  `json:"description"`
	Scope       string  `json:"scope"`
	Write       bool    `json:"write"`
	Allowed     bool    `json:"allowed"`
	Input       *Schema `json:"input_schema"`
}

// Detail is all that the gateway says of a tool.
type Detail struct {
	Tool
	// Output is nil for a tool that declares none. Limits are numbers by the names that the gateway gives them.
	Output *Schema `json:"output_schema"`
	Errors []struct {
		Code   fault.Code `json:"code"`
		Reason string     `json:"reason"`
	} `json:"errors"`
	Limits   map[string]json.Number `json:"limits"`
	Examples []struct {
		Title   string          `json:"title"`
		Request json.RawMessage `json:"request"`
	} `json:"examples"`
}

// Catalog is what the gateway offers to a key.
type Catalog struct {
	// Version is that of the gateway's catalog, which changes with any tool.
	Version string  `json:"version"`
	Tools   []*Tool `json:"tools"`
	// Body is the answer that it came in.
	Body []byte `json:"-"`
	// Asked tells that the gateway has said so just now, in contrast to a catalog that was kept.
	Asked bool `json:"-"`
}

// Tool returns a tool by its name, or nil.
func (c *Catalog) Tool(name string) *Tool {
	for _, t := range c.Tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Names are those of the tools.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.Tools))
	for i, t := range c.Tools {
		names[i] = t.Name
	}
	return names
}

// Catalog returns the catalog. One that was kept in the cache within age is taken as it is; an older one is asked for by its
// ETag. When that fails, the old one comes with the error.
// An age of 0 always asks. Both results may be there: a caller for whom an old catalog is better than none looks at
// the first.
func (c *Client) Catalog(ctx context.Context, cache *Cache, age time.Duration) (*Catalog, error) {
	kept, at, etag := cache.get(c)
	if kept != nil && cache.age(at) < age {
		return kept, nil
	}
	a, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/api/tools", ETag: etag})
	if err != nil {
		return kept, err
	}
	body := a.Body
	if a.Unchanged {
		body = kept.Body
	}
	found, err := readCatalog(body)
	if err != nil {
		return nil, err
	}
	// An answer that says "unchanged" is news too: it was so just now.
	found.Asked = true
	cache.put(c, body, a.ETag)
	return found, nil
}

// readCatalog reads the answer of GET /api/tools. A tool without an input schema gets an empty one, so that callers need no check for
// nil; a null in the list becomes a tool without a name.
func readCatalog(body []byte) (*Catalog, error) {
	var envelope struct{ Data *Catalog }
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, fmt.Errorf("the gateway's catalog cannot be read: %w", err)
	}
	if envelope.Data == nil {
		return nil, errors.New("what answers for the gateway has no catalog")
	}
	for i, t := range envelope.Data.Tools {
		if t == nil {
			t = &Tool{}
			envelope.Data.Tools[i] = t
		}
		if t.Input == nil {
			t.Input = &Schema{}
		}
	}
	envelope.Data.Body = body
	return envelope.Data, nil
}

// Detail returns all about a tool, and the answer that it came in.
// A tool that there is not is a *Failure with E_NOT_FOUND.
func (c *Client) Detail(ctx context.Context, name string) (*Detail, []byte, error) {
	a, err := c.Do(ctx, Request{Method: http.MethodGet, Path: ToolPath(name) + "/detail"})
	if err != nil {
		return nil, nil, err
	}
	var envelope struct{ Data Detail }
	if err := json.Unmarshal(a.Body, &envelope); err != nil {
		return nil, nil, fmt.Errorf("what the gateway says of %s cannot be read: %w", name, err)
	}
	if envelope.Data.Input == nil {
		envelope.Data.Input = &Schema{}
	}
	return &envelope.Data, a.Body, nil
}

// ToolPath is where a tool is called.
// The name is escaped: on a command line it may be anything.
func ToolPath(name string) string { return "/api/tools/" + url.PathEscape(name) }
