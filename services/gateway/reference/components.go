package reference

import (
	"maps"
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
)

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

func headerRefs(names ...string) object {
	all := object{}
	for _, name := range names {
		all[name] = ref("headers", name)
	}
	return all
}

func securitySchemes() object {
	return object{
		"bearer": object{"type": "http", "scheme": "bearer", "description": "An API key of an agent: crm_ and 42 characters."},
		"key":    object{"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key, in a header of its own."},
		"serviceJWT": object{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
			"description": "The ServiceJWT of a Connected App, signed with its shared secret (HS256) and good for one call: a retry " +
				"needs a new one."},
	}
}

func parameters() object {
	key := func(required bool, description string) object {
		return object{"name": tool.KeyHeader, "in": "header", "required": required, "description": description,
			"schema": object{"type": "string", "minLength": 1, "maxLength": 255}, "example": "8c1c6d0e-6f5b-4b1e-9f43-0f6d3a1a2b7c"}
	}
	return object{
		"IdempotencyKey": key(true, "A new value for each intended write, and the same one to try it again: it is then done once."),
		"OptionalIdempotencyKey": key(false,
			"The same value to try a write again: it is then done once. Kept for 30 days, and advised wherever money moves."),
		"RequestID": object{"name": "X-Request-Id", "in": "header",
			"description": "A name for the call, which its answer and the audit log have; one is made when it is absent.",
			"schema":      object{"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"}},
		"ExternalUserID": object{"name": "X-External-User-Id", "in": "header",
			"description": "For whom the agent works, as a label: they have a limit of their own. Absent, the key has.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 200}},
		"IfNoneMatch": object{"name": "If-None-Match", "in": "header", "description": "The ETag of an earlier answer.",
			"schema": object{"type": "string"}},
	}
}

func headers() object {
	text := object{"type": "string"}
	return object{
		"X-Request-Id": object{"description": "As in the envelope.", "schema": text, "required": true},
		"Idempotent-Replayed": object{"description": "true: an earlier call with the same key did it, and this is its answer.",
			"schema": object{"const": "true"}},
		"Retry-After": object{"description": "After how many seconds the same call may succeed.",
			"schema": object{"type": "integer", "minimum": 1}},
		"RateLimit": object{"description": "What is left: r calls at once, all of the burst after t seconds.", "schema": text,
			"example": `"user";r=59;t=1, "service";r=299;t=1`},
		"RateLimit-Policy": object{"description": "The limits: q calls in w seconds.", "schema": text,
			"example": `"user";q=120;w=60, "service";q=1200;w=60`},
		"ETag": object{"description": "For If-None-Match.", "schema": text, "required": true},
	}
}

func failureExamples() object {
	all := object{}
	for code, f := range failures() {
		all[string(code)] = object{"summary": string(code), "value": f}
	}
	return all
}

func schemas() object {
	text, number := object{"type": "string"}, object{"type": "integer"}
	return object{
		"Count": object{"type": "integer", "minimum": 0, "description": "How many rows data has of what was asked for; 1 for " +
			"one thing."},
		"RequestID": object{"type": "string", "description": "Names the call in the audit log, and when you report a problem."},
		"TookMS":    object{"type": "integer", "minimum": 0, "description": "How long the call took here, in milliseconds."},
		"Failure": object{"type": "object", "required": []string{"ok", "error", "request_id", "took_ms"}, "properties": object{
			"ok":         object{"const": false},
			"link_url":   object{"type": "string", "description": "With ACCOUNT_LINK_REQUIRED: where the user links their account."},
			"request_id": ref("schemas", "RequestID"), "took_ms": ref("schemas", "TookMS"),
			"error": object{"type": "object", "required": []string{"code", "message", "retryable"}, "properties": object{
				"code":    object{"enum": slices.Sorted(maps.Keys(fault.Codes()))},
				"message": object{"type": "string", "description": "What is wrong, and what mends it."},
				"details": object{"type": "object", "description": "What a program needs to mend it: violations, retryAfter, from " +
					"and to."},
				"retryable": object{"type": "boolean", "description": "Whether the same call may succeed later."}}}}},
		"Catalog": object{"type": "object", "required": []string{"version", "openapi", "docs", "note", "headers", "tools"},
			"properties": object{
				"version": text, "openapi": text, "docs": text, "note": text,
				"headers": object{"type": "object", "additionalProperties": text, "description": "What the headers of a call hold."},
				"tools":   object{"type": "array", "items": ref("schemas", "Tool")}}},
		"Tool": object{"type": "object", "properties": object{
			"name": text, "category": text, "description": text, "scope": text,
			"write":   object{"type": "boolean"},
			"allowed": object{"type": "boolean", "description": "Whether this key holds the scope."},
			"idempotency": object{"const": tool.KeyRequired,
				"description": "A call needs an Idempotency-Key; absent, the header is ignored."},
			"input_schema": object{"type": "object", "description": "JSON Schema 2020-12 of the body."},
			"call": object{"type": "object", "required": []string{"method", "path", "headers"}, "properties": object{
				"method": object{"const": "POST"}, "path": text, "headers": object{"type": "array", "items": text}}}},
			"required": []string{"name", "category", "description", "write", "scope", "allowed", "call", "input_schema"}},
		"Detail": object{"allOf": []object{ref("schemas", "Tool"), {"type": "object",
			"required": []string{"output_schema", "errors", "limits", "examples"}, "properties": object{
				"output_schema": object{"type": "object", "description": "JSON Schema 2020-12 of data."},
				"errors": object{"type": "array", "items": object{"type": "object", "required": []string{"code", "reason"},
					"properties": object{"code": text, "reason": text}}},
				"limits": object{"type": "object", "additionalProperties": number},
				"examples": object{"type": "array", "items": object{"type": "object", "required": []string{"title", "count", "request",
					"answer"},
					"properties": object{"title": text, "count": number, "request": object{}, "answer": object{}}}}}}}},
	}
}

func invalidUser() tool.ErrorDoc {
	return tool.ErrorDoc{Code: fault.Validation, Reason: "The header X-External-User-Id has other than 1 to 200 printable characters."}
}

func noTool() tool.ErrorDoc {
	return tool.ErrorDoc{Code: fault.NotFound, Reason: "There is no tool of that name; the message names the nearest."}
}
