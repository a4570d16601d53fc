package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
)

// outcome is what a success of an operation has of its own.
// data is its schema: an object of this package, or raw as the service declared it.
type outcome struct {
	// tool is the name in the envelope; empty where it is another with each call, and for a route, whose envelope has none.
	tool     string
	route    bool
	data     any
	headers  []string
	examples []tool.Example
}

// envelope is a success.
// Its members stand in the order of the gateway's own answers, so examples look like those.
type envelope struct {
	OK        bool            `json:"ok"`
	Tool      string          `json:"tool,omitempty"`
	Count     int             `json:"count"`
	RequestID string          `json:"request_id"`
	TookMS    int             `json:"took_ms"`
	Data      json.RawMessage `json:"data"`
}

// success is the answer of a call that succeeded.
// Its schema names each member as required; the examples are whole answers with the envelope around them.
func success(o outcome) object {
	members := object{"ok": object{"const": true}, "count": ref("schemas", "Count"), "request_id": ref("schemas", "RequestID"),
		"took_ms": ref("schemas", "TookMS"), "data": o.data}
	if raw, isRaw := o.data.(json.RawMessage); isRaw && len(raw) == 0 {
		// The empty schema allows anything (JSON Schema): the service has declared no output.
		members["data"] = object{}
	}
	switch {
	case o.tool != "":
		members["tool"] = object{"const": o.tool}
	case !o.route:
		members["tool"] = object{"type": "string"}
	}
	examples := object{}
	for _, e := range o.examples {
		examples[slug(e.Title)] = object{"summary": e.Title, "value": envelope{true, o.tool, e.Count, exampleRequestID, 3, e.Data}}
	}
	return object{"description": "The success envelope.",
		"headers": headerRefs(append(o.headers, "X-Request-Id", "RateLimit", "RateLimit-Policy")...),
		"content": object{"application/json": media(object{"type": "object", "required": slices.Sorted(maps.Keys(members)),
			"properties": members}, examples)}}
}

// responses are a success with its status, the failures by theirs, and what any other status is.
// The status "default" is what a client meets that knows fewer codes than this release answers.
func responses(errors []tool.ErrorDoc, status string, ofSuccess object) object {
	all := object{status: ofSuccess, "default": ref("responses", "Failure")}
	for status, of := range byStatus(errors) {
		all[strconv.Itoa(status)] = failed(of)
	}
	return all
}

// byStatus groups the codes of an operation by the status that each is answered with: OpenAPI has one response for a status.
func byStatus(errors []tool.ErrorDoc) map[int][]tool.ErrorDoc {
	statuses, all := fault.Codes(), map[int][]tool.ErrorDoc{}
	for _, e := range errors {
		all[statuses[e.Code]] = append(all[statuses[e.Code]], e)
	}
	return all
}

// failed is the answer of a call that failed with one of these codes, which have one status.
// The enum narrows the shared schema Failure to the codes of this status; allOf keeps all else of it.
func failed(errors []tool.ErrorDoc) object {
	var lines []string
	var detailCodes []string
	codes, examples, names := []fault.Code{}, object{}, []string{"X-Request-Id"}
	for _, e := range errors {
		codes, detailCodes = append(codes, e.Code), union(detailCodes, e.DetailCodes)
		lines = append(lines, fmt.Sprintf("`%s`: %s", e.Code, e.Reason))
		examples[string(e.Code)] = ref("examples", string(e.Code))
		switch e.Code {
		case fault.RateLimit:
			names = append(names, "Retry-After", "RateLimit", "RateLimit-Policy")
		case fault.DB, fault.Conflict:
			names = append(names, "Retry-After")
		}
	}
	members := object{"code": object{"enum": codes}}
	if len(detailCodes) > 0 {
		members["details"] = object{"properties": object{"code": object{"enum": detailCodes}}}
	}
	code := object{"properties": object{"error": object{"properties": members}}}
	return object{"description": strings.Join(lines, "\n\n"), "headers": headerRefs(names...),
		"content": object{"application/json": media(object{"allOf": []object{ref("schemas", "Failure"), code}}, examples)}}
}

// locations say what a Location means beside a status.
var locations = map[int]string{http.StatusCreated: "Where it is.", http.StatusAccepted: "Where its state can be asked for.",
	http.StatusSeeOther: "Where to go on."}

// responses are those of the operation.
// Examples go with the first success, which is the usual one; any other has the schema alone.
func (o operation) responses() object {
	all := object{}
	if o.Form == tool.RawForm {
		all["default"] = text("What went wrong, in one line.")
		for status, of := range byStatus(o.errors()) {
			lines := []string{}
			for _, e := range of {
				lines = append(lines, e.Reason)
			}
			all[strconv.Itoa(status)] = text(strings.Join(lines, " "))
		}
	}
	for i, status := range o.Success {
		of := outcome{route: !o.isTool, data: o.Output}
		if o.isTool {
			of.tool = o.Name
		}
		if o.Idempotency != tool.KeyIgnored {
			of.headers = []string{"Idempotent-Replayed"}
		}
		if i == 0 {
			of.examples = o.Examples
		}
		answer := success(of)
		switch {
		case o.Form == tool.RawForm && status == http.StatusSeeOther:
			answer = object{"description": "The browser goes on elsewhere."}
		case o.Form == tool.RawForm:
			answer = text("As whoever calls expects it, without an envelope.")
		case i == 0:
			maps.Copy(all, responses(o.errors(), strconv.Itoa(status), answer))
		}
		if where := locations[status]; where != "" {
			held, _ := answer["headers"].(object)
			if held == nil {
				held = object{}
			}
			// A 303 without a Location leads nowhere, so it is required there alone.
			held["Location"] = object{"schema": object{"type": "string"}, "description": where, "required": status == http.StatusSeeOther}
			answer["headers"] = held
		}
		all[strconv.Itoa(status)] = answer
	}
	return all
}

// text is an answer of plain text.
func text(description string) object {
	return object{"description": description, "content": object{"text/plain": object{"schema": object{"type": "string"}}}}
}
