package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hub.internal/pkg/caller"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// listings are the tools of one version of the catalog, by the scopes held (string, a byte for each tool).
type listings struct {
	version **catalog.Entry
	byScope sync.Map
}

// listTools answers the tools that the key may use, on one page.
func (s *Server) listTools(ctx context.Context, x *exchange) (mcp.Result, error) {
	c := x.call(s.gateway)
	response, err := s.list(ctx, c)
	if err != nil {
		return nil, s.refused(ctx, c, codeRefused, err)
	}
	tools := response.([]*mcp.Tool)
	return &mcp.ListToolsResult{Tools: tools, Cacheable: mcp.Cacheable{CacheScope: "private"}}, nil
}

// listing ends the way of tools/list.
func (s *Server) listing(_ context.Context, request any) (any, error) {
	return s.toolsOf(request.(*edge.Call).Caller)
}

// toolsOf are the tools that a caller may use, made once for all who hold the same scopes.
func (s *Server) toolsOf(who caller.Caller) ([]*mcp.Tool, error) {
	entries := s.gateway.Catalog.Entries()
	if len(entries) == 0 {
		return []*mcp.Tool{}, nil
	}
	made := s.tools.Load()
	if made == nil || made.version != &entries[0] {
		made = &listings{version: &entries[0]}
		s.tools.Store(made)
	}
	allowed := make([]byte, len(entries))
	for i, e := range entries {
		if who.Holds(e.Spec.Scope) {
			allowed[i] = 1
		}
	}
	if known, ok := made.byScope.Load(string(allowed)); ok {
		return known.([]*mcp.Tool), nil
	}
	tools := []*mcp.Tool{}
	for i, e := range entries {
		if allowed[i] == 1 {
			t, err := describe(e)
			if err != nil {
				return nil, err
			}
			tools = append(tools, t)
		}
	}
	known, _ := made.byScope.LoadOrStore(string(allowed), tools)
	return known.([]*mcp.Tool), nil
}

// describe is a tool as a client is told of it. What it writes is kept beside what was there, under a key that makes
// a repetition harmless; and all of it is Hub's own.
func describe(e *catalog.Entry) (*mcp.Tool, error) {
	title := titleOf(e.Spec.Name)
	output, err := json.Marshal(map[string]any{"type": "object", "anyOf": []any{e.Spec.Output, failureSchema()}})
	if err != nil {
		return nil, err
	}
	t := &mcp.Tool{Name: e.Spec.Name, Title: title, Description: e.Spec.Description, InputSchema: e.Spec.Input,
		OutputSchema: json.RawMessage(output), Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: !e.Spec.Write, IdempotentHint: true,
			DestructiveHint: new(false), OpenWorldHint: new(false)}}
	t.Meta = mcp.Meta{"hub/scope": e.Spec.Scope, "hub/category": e.Spec.Category}
	return t, nil
}

// failureSchema is that of the failure envelope: a result that is an error holds it, and clients hold every result to
// the tool's outputSchema, errors too.
func failureSchema() map[string]any {
	text, details := map[string]any{"type": "string"}, map[string]any{"type": "object", "additionalProperties": true}
	return map[string]any{"type": "object", "required": []string{"ok", "error", "request_id"}, "properties": map[string]any{
		"ok": map[string]any{"const": false}, "request_id": text, "took_ms": map[string]any{"type": "integer"},
		"error": map[string]any{"type": "object", "required": []string{"code", "message", "retryable"}, "properties": map[string]any{
			"code": text, "message": text, "details": details, "retryable": map[string]any{"type": "boolean"}}}}}
}

// titleOf is a name for people: execute_read_sql becomes Execute read SQL.
func titleOf(name string) string {
	acronyms := map[string]string{"ddl": "DDL", "sql": "SQL", "pg": "PG"}
	words := strings.Split(name, "_")
	for i, w := range words {
		if slices.Contains(slices.Collect(maps.Keys(acronyms)), w) {
			words[i] = acronyms[w]
		} else if i == 0 && w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}
