package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
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
		InputSchema: s.Input, Call: howToCall{http.MethodPost, toolRoot + s.Name, []string{"Authorization", "Content-Type"}}}
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
	return detailed{e.listed(p.Caller), e.Spec.Output, errorsOf(e.Spec), limits, e.Spec.Examples}
}

// errorsOf lists the codes that a tool can answer: those of the edge, then its own.
// A tool's own reason replaces the edge's for the same code.
func errorsOf(s tool.Spec) []tool.ErrorDoc {
	edge := []tool.ErrorDoc{
		{Code: fault.Validation, Reason: "The body breaks the input schema; details.violations lists every violation."},
		{Code: fault.AuthMissing, Reason: "No API key was sent."},
		{Code: fault.AuthInvalid, Reason: "The API key is malformed or unknown."},
		{Code: fault.AuthRevoked, Reason: "The API key was revoked or has expired."},
		{Code: fault.Scope, Reason: "The API key lacks the scope " + s.Scope + "."},
		{Code: fault.RateLimit, Reason: "Too many calls; try again after details.retryAfter seconds."},
		{Code: fault.DB, Reason: "A service or a database is not available right now; try again."},
		{Code: fault.Internal, Reason: "A defect of Hub; quote the request_id."},
	}
	if s.Write {
		edge = append(edge,
			tool.ErrorDoc{Code: fault.Idempotency, Reason: "The Idempotency-Key was used before with another input."},
			tool.ErrorDoc{Code: fault.Conflict, Reason: "A call with the same Idempotency-Key still runs (details.code REQUEST_IN_PROGRESS)."})
	}
	own := map[fault.Code]bool{}
	for _, e := range s.Errors {
		own[e.Code] = true
	}
	out := slices.DeleteFunc(edge, func(e tool.ErrorDoc) bool { return own[e.Code] })
	return append(out, s.Errors...)
}
