package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hub.internal/pkg/service"
)

// versionInRequest is the first revision whose requests say for themselves in which one they are.
const versionInRequest = "2026-07-28"

// answerDirectly answers a single call that has nothing unusual about it, as the protocol would (TestDirectAnswersAreTheProtocols):
// which makes a session for each request, and so takes twice the time of the call. It tells whether it did; whatever it
// is not sure of is the protocol's to judge.
func (s *Server) answerDirectly(ctx context.Context, x *exchange, r *http.Request) bool {
	if x.batch || len(x.messages) != 1 {
		return false
	}
	m := x.messages[0]
	var name string
	var meta map[string]any
	switch {
	case !m.isCall, string(m.version) != `"2.0"`, m.id == nil, json.Unmarshal(m.name, &name) != nil, name == "",
		m.meta != nil && (within(ctx, m.meta) != nil || json.Unmarshal(m.meta, &meta) != nil),
		!acceptsBoth(r.Header), r.Header.Get("Last-Event-ID") != "":
		return false
	}
	version := r.Header.Get("Mcp-Protocol-Version")
	said, saysVersion := meta[mcp.MetaKeyProtocolVersion]
	named := r.Header.Get("Mcp-Method") == callMethod && r.Header.Get("Mcp-Name") == name
	switch {
	case !saysVersion && version < versionInRequest && (version == "" || slices.Contains(mcp.SupportedProtocolVersions(), version)):
	case version == versionInRequest && said == version && named && introducesClient(m.meta):
	default:
		return false
	}
	x.outlivesCalls = true
	result, err := s.callTool(ctx, x, 0, name, meta)
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		if version == versionInRequest {
			x.status = http.StatusBadRequest // as every InvalidParams is, since that revision
		}
		x.header.Set("Content-Type", "application/json")
		x.out.Write(errorBody(json.RawMessage(m.id), wire))
		return true
	}
	if version == versionInRequest {
		result.Meta[mcp.MetaKeyServerInfo] = s.implementation
	}
	written := directResult{Meta: result.Meta, StructuredContent: result.StructuredContent, IsError: result.IsError}
	for _, content := range result.Content {
		written.Content = append(written.Content, directText{"text", content.(*mcp.TextContent).Text})
	}
	if version == versionInRequest {
		written.ResultType = "complete"
	}
	b, err := json.Marshal(written)
	if err != nil {
		return false
	}
	x.header.Set("Content-Type", "application/json")
	x.out.WriteString(`{"jsonrpc":"2.0","id":`)
	x.out.Write(m.id)
	x.out.WriteString(`,"result":`)
	x.out.Write(b)
	x.out.WriteString("}")
	return true
}

// directResult is an mcp.CallToolResult, and directText its text, as the protocol writes them: their own methods write each part twice.
type directResult struct {
	Meta              mcp.Meta     `json:"_meta"`
	Content           []directText `json:"content"`
	StructuredContent any          `json:"structuredContent"`
	IsError           bool         `json:"isError,omitempty"`
	ResultType        string       `json:"resultType,omitempty"`
}

type directText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// introducesClient tells that a client says what the protocol wants to know of it.
func introducesClient(meta []byte) bool {
	var of struct {
		Info         *mcp.Implementation     `json:"io.modelcontextprotocol/clientInfo"`
		Capabilities *mcp.ClientCapabilities `json:"io.modelcontextprotocol/clientCapabilities"`
	}
	return json.Unmarshal(meta, &of) == nil && of.Capabilities != nil
}

// acceptsBoth tells that a client takes both forms of an answer, as it has to.
func acceptsBoth(h http.Header) bool {
	accept := strings.Join(h.Values("Accept"), ",")
	has := func(kind string) bool { return strings.Contains(accept, kind) }
	return accept == "" || has("*/*") || has("application/json") && has("text/event-stream")
}

// implementation is how Hub names itself to clients.
func implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "hub", Title: "Hub", Version: service.Version}
}
