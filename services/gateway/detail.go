package gateway

import (
	"encoding/json"
	"net/http"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/reference"
)

// listed is a tool as the catalog shows it to one credential.
type listed struct {
	Name        string    `json:"name"`
	Category    string    `json:"category"`
	Description string    `json:"description"`
	Write       bool      `json:"write"`
	Scope       string    `json:"scope"`
	Allowed     bool      `json:"allowed"`
	Call        howToCall `json:"call"`
	// Idempotency is "required" where a call needs an Idempotency-Key, and absent where the header is ignored.
	Idempotency string          `json:"idempotency,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// howToCall is the request that calls a tool: its body is the input, and what its headers hold is said once, in the listing.
type howToCall struct {
	Method  string   `json:"method"`
	Path    string   `json:"path"`
	Headers []string `json:"headers"`
}

// detailed is what GET /api/tools/{name}/detail adds.
type detailed struct {
	listed
	OutputSchema json.RawMessage  `json:"output_schema"`
	Errors       []tool.ErrorDoc  `json:"errors"`
	Limits       map[string]int64 `json:"limits"`
	Examples     []tool.Example   `json:"examples"`
}

func (e *Entry) listed(c caller.Caller) listed {
	s := e.Spec
	l := listed{Name: s.Name, Category: s.Category, Description: s.Description, Write: s.Write, Scope: s.Scope, Allowed: c.Holds(s.Scope),
		InputSchema: s.Input, Call: howToCall{http.MethodPost, reference.ToolRoot + s.Name, []string{"Authorization", "Content-Type"}}}
	if e.key() == tool.KeyRequired {
		l.Idempotency, l.Call.Headers = tool.KeyRequired, append(l.Call.Headers, tool.KeyHeader)
	}
	return l
}

func (e *Entry) detailed(p Principal) detailed {
	limits := map[string]int64{
		"max_body_bytes": e.Spec.MaxBody, "timeout_ms": e.Spec.TimeoutMS,
		"rate_user_per_minute": int64(p.User.PerMinute), "rate_user_burst": int64(p.User.Burst),
		"rate_service_per_minute": int64(p.ServiceWide.PerMinute), "rate_service_burst": int64(p.ServiceWide.Burst),
	}
	for name, n := range e.Spec.Limits {
		limits[name] = n
	}
	return detailed{e.listed(p.Caller), e.Spec.Output, reference.Errors(e.Spec), limits, e.Spec.Examples}
}
