package mcp

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

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

// listing ends the way of tools/list: the tools that the caller may use.
func (s *Server) listing(_ context.Context, request any) (any, error) {
	who := request.(*edge.Call).Caller
	return catalog.ForScopes(s.gateway.Catalog, "mcp", who, func(entries []*catalog.Entry) ([]*mcp.Tool, error) {
		tools := []*mcp.Tool{}
		for _, e := range entries {
			if !who.Holds(e.Spec.Scope) {
				continue
			}
			t, err := describe(e)
			if err != nil {
				return nil, err
			}
			tools = append(tools, t)
		}
		return tools, nil
	})
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
		if acronym := acronyms[w]; acronym != "" {
			words[i] = acronym
		} else if i == 0 && w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}
