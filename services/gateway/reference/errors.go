package reference

import (
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
)

// Errors lists the codes that a tool can answer: those of the edge, then its own. A tool's own reason replaces
// the edge's for the same code.
// The detail of a tool (GET /api/tools/{name}/detail) lists them.
func Errors(s tool.Spec) []tool.ErrorDoc {
	o := operation{RouteSpec: tool.RouteSpec{Spec: s, Credential: tool.KeyCredential, Idempotency: tool.KeyIgnored}}
	if s.Write {
		o.Idempotency = tool.KeyRequired
	}
	return o.errors()
}

// errors is Errors for any operation.
// The order is the reader's: input, credential, scope, then what any call can meet. The edge judges in another one.
func (o operation) errors() []tool.ErrorDoc {
	edge := []tool.ErrorDoc{{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."}}
	switch o.Credential {
	case tool.KeyCredential:
		edge = append(edge, keyErrors()...)
	case tool.AppCredential, tool.AppUnlinkedCredential:
		edge = append(edge, appErrors()...)
	}
	if o.Scope != "" {
		edge = append(edge, tool.ErrorDoc{Code: fault.Scope, Reason: "The credential lacks the scope " + o.Scope + "."})
	}
	if o.Credential == tool.AppCredential {
		edge = append(edge, tool.ErrorDoc{Code: fault.AccountLinkMissing, DetailCodes: []string{string(fault.AccountLinkMissing)},
			Reason: "The user has not linked an account to this app, or not with this scope: send them to link_url, and call again " +
				"then."})
	}
	edge = append(edge, anyErrors()...)
	if o.Idempotency != tool.KeyIgnored {
		edge = append(edge, keyTwice()...)
	}
	return merged(edge, o.RouteSpec.Errors)
}

// catalogErrors are those of the catalog, and of a detail of it.
func catalogErrors(own ...tool.ErrorDoc) []tool.ErrorDoc {
	return merged(append(keyErrors(), anyErrors()...), own)
}

// keyErrors are those of a call that needs an API key.
func keyErrors() []tool.ErrorDoc {
	return []tool.ErrorDoc{
		{Code: fault.AuthMissing, Reason: "No API key was sent."},
		{Code: fault.AuthInvalid, Reason: "The API key is malformed or unknown."},
		{Code: fault.AuthRevoked, Reason: "The API key was revoked or has expired."},
	}
}

// appErrors are those of a call that needs a ServiceJWT.
// A token that was used before is E_AUTH_INVALID: a ServiceJWT is good once.
func appErrors() []tool.ErrorDoc {
	return []tool.ErrorDoc{
		{Code: fault.AuthMissing, Reason: "No ServiceJWT was sent."},
		{Code: fault.AuthInvalid, Reason: "The ServiceJWT is malformed, wrongly signed or used up."},
		{Code: fault.AuthExpired, Reason: "The ServiceJWT has expired."},
		{Code: fault.AuthRevoked, Reason: "The app is not active."},
	}
}

// anyErrors are those of any call.
// E_DB is what the caller of a service hears that does not answer at all.
func anyErrors() []tool.ErrorDoc {
	return []tool.ErrorDoc{
		{Code: fault.RateLimit, Reason: "Too many calls; try again after details.retryAfter seconds."},
		{Code: fault.DB, Reason: "A service or a database is not available right now; try again."},
		{Code: fault.Internal, Reason: "A defect of Hub; quote the request_id."},
	}
}

// keyTwice are those of a call with an Idempotency-Key.
func keyTwice() []tool.ErrorDoc {
	return []tool.ErrorDoc{
		{Code: fault.Idempotency, Reason: "The Idempotency-Key was used before with another input."},
		{Code: fault.Conflict, DetailCodes: []string{fault.RequestInProgress},
			Reason: "A call with the same Idempotency-Key still runs (details.code " + fault.RequestInProgress + ")."},
	}
}

// merged is the edge's errors and then an operation's own, which replace those of the same code, but for their details.code: the
// edge can still refuse so.
func merged(edge, own []tool.ErrorDoc) []tool.ErrorDoc {
	own = slices.Clone(own)
	return append(slices.DeleteFunc(edge, func(e tool.ErrorDoc) bool {
		i := slices.IndexFunc(own, func(o tool.ErrorDoc) bool { return o.Code == e.Code })
		if i < 0 {
			return false
		}
		own[i].DetailCodes = union(own[i].DetailCodes, e.DetailCodes)
		return true
	}), own...)
}

// union is a, and what of b is not in it.
func union(a, b []string) []string {
	a = slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// failure is the envelope of a failure.
// LinkURL stands beside the error, too, for ACCOUNT_LINK_REQUIRED alone (SPEC.md 3.1).
type failure struct {
	OK        bool    `json:"ok"`
	Error     refusal `json:"error"`
	LinkURL   string  `json:"link_url,omitempty"`
	RequestID string  `json:"request_id"`
	TookMS    int     `json:"took_ms"`
}

// refusal is the member error of a failure.
// Details differ with the code; CONTRACT.md has them.
type refusal struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	Details   any        `json:"details,omitempty"`
	Retryable bool       `json:"retryable"`
}

// exampleRequestID is that of all examples.
const exampleRequestID = "req_01KF3Z8J5N9Q2V7X4B6D8G0HTM"

// failures has an example of each code.
// It goes over all codes of fault; one without words here has an empty message.
func failures() map[fault.Code]failure {
	link := object{"code": "ACCOUNT_LINK_REQUIRED", "link_url": "https://hub.example/connect?t=…",
		"expires_at": "2026-01-15T09:10:00.000Z", "reason": "NOT_LINKED"}
	said := map[fault.Code]refusal{
		fault.Validation: {Message: "/limit must be at most 200.", Details: object{"violations": []object{
			{"path": "/limit", "rule": "maximum", "message": "must be at most 200"}}}},
		fault.AuthMissing: {Message: "An API key is required: send it as Authorization: Bearer <API_KEY> or X-API-Key: <API_KEY>."},
		fault.AuthInvalid: {Message: "The API key is not valid."},
		fault.AuthExpired: {Message: "The ServiceJWT has expired."},
		fault.AuthRevoked: {Message: "The API key was revoked."},
		fault.Scope: {Message: `The credential lacks the scope "author" that create_segment needs.`,
			Details: object{"scope": "author"}},
		fault.NotFound: {Message: `There is no tool "search_brand". Did you mean search_brands? GET /api/tools lists all.`},
		fault.Conflict: {Message: "The draft is in_review, and only a draft can be queued.",
			Details: object{"from": "in_review", "to": "in_review"}},
		fault.Idempotency: {Message: "The Idempotency-Key was used before with another input."},
		fault.Suppressed: {Message: "1 target is on the suppression list.", Details: object{"targets": []object{
			{"index": 0, "externalId": 7, "toEmail": "someone@company.example"}}}},
		fault.RateLimit: {Message: "Too many calls: the user limit is reached. Try again in 2 s.",
			Details: object{"retryAfter": 2, "scope": "user"}},
		fault.DBTimeout: {Message: "The source database did not answer in time."},
		fault.DB:        {Message: "The query service is not available right now. Try again in a moment."},
		fault.Internal:  {Message: "An unexpected error occurred. Quote the request_id when you report it."},
		fault.BadAmount: {Message: "The price does not hold: supplyAmount and vat do not add up to amount.",
			Details: object{"rule": "SUM"}},
		fault.AccountLinkMissing: {Message: "The user has not linked an account to this app. Send them to link_url, and call again then.",
			Details: link},
	}
	all := map[fault.Code]failure{}
	for code := range fault.Codes() {
		f := failure{Error: said[code], RequestID: exampleRequestID, TookMS: 1}
		f.Error.Code, f.Error.Retryable = code, fault.New(code, "").Retryable()
		if code == fault.AccountLinkMissing {
			f.LinkURL = link["link_url"].(string)
		}
		all[code] = f
	}
	return all
}

// invalidUser is what is wrong with an X-External-User-Id.
func invalidUser() tool.ErrorDoc {
	return tool.ErrorDoc{Code: fault.Validation, Reason: "The header X-External-User-Id has other than 1 to 200 printable characters."}
}

// noTool is the error of a name that no tool has.
func noTool() tool.ErrorDoc {
	return tool.ErrorDoc{Code: fault.NotFound, Reason: "There is no tool of that name; the message names the nearest."}
}
