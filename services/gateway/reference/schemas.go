package reference

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"

	"hub.internal/pkg/jsontree"
)

// named are the schemas that the document says once, by name: those of the base, and those of objects with a title. What a service
// declares as one type has one title. Should two say different things by one name, the second stays where it stands.
// It grows while the document is made, so which of two comes first depends on the order of operations, which is fixed.
type named map[string]json.RawMessage

// componentName is the form of a name of a component.
var componentName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// refer puts references in the place of the titled objects in a schema, and keeps the order of all else. What is no JSON stays.
// It works from the inside out: the objects in an object are references before the object itself is kept.
func (n named) refer(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for i := range list {
			list[i] = n.refer(list[i])
		}
		return encoded(list)
	}
	members, err := jsontree.Members(raw)
	if err != nil {
		return raw
	}
	for i, m := range members {
		members[i].Value = n.refer(m.Value)
	}
	s, err := read(raw)
	if err != nil || !componentName.MatchString(s.Title) || len(s.Properties) == 0 {
		return joined(members)
	}
	return n.reference(s, members)
}

// reference keeps a titled object under its name, and is what refers to it. That it may be null, and its description, are of the place.
// An example: a member of type ["object","null"] with the title Order becomes
// {"anyOf":[{"$ref":"#/components/schemas/Order"},{"type":"null"}]}.
func (n named) reference(s node, members []jsontree.Member) json.RawMessage {
	types, _ := s.Type.([]any)
	nullable := slices.Contains(types, "null")
	var own []jsontree.Member
	for _, m := range members {
		switch {
		case m.Name == "description":
			continue
		case m.Name == "type" && nullable:
			m.Value = json.RawMessage(`"object"`)
		}
		own = append(own, m)
	}
	said := joined(own)
	if known, is := n[s.Title]; is && !bytes.Equal(known, said) {
		return joined(members)
	}
	n[s.Title] = said
	to := ref("schemas", s.Title)
	if nullable {
		to = object{"anyOf": []object{to, {"type": "null"}}}
	}
	if s.Description != "" {
		to["description"] = s.Description
	}
	return encoded(to)
}

// joined is an object of these members, in their order.
// json.Marshal of a map would sort them.
func joined(members []jsontree.Member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, encoded(m.Name)...), ':'), m.Value...)
	}
	return append(b, '}')
}

// encoded is v as JSON; what is said of the API can be encoded.
func encoded(v any) json.RawMessage {
	b, _ := PlainJSON(v)
	return b
}

// webhooks are the messages to apps, by type: a schema that they share, and its type.
// OpenAPI 3.1 has webhooks beside paths: calls that come from the API. The example stands with the first type alone, which it is one of.
func (a API) webhooks(names named) object {
	all := object{}
	for _, n := range a.Notifications {
		body := names.refer(n.Body)
		for i, t := range n.Types {
			examples := object{}
			if i == 0 && len(n.Example) > 0 {
				examples["message"] = object{"summary": t.Type, "value": n.Example}
			}
			kind := object{"properties": object{"type": object{"const": t.Type}}}
			all[t.Type] = object{"post": object{"operationId": t.Type, "summary": t.Type, "tags": []string{notificationTag},
				"description": "Sent when: " + t.When + ".",
				"security":    []object{}, // the signature is what a receiver believes
				"parameters": []object{ref("parameters", "WebhookID"), ref("parameters", "WebhookTimestamp"),
					ref("parameters", "WebhookSignature")},
				"requestBody": object{"required": true, "content": object{"application/json": media(object{"allOf": []any{body, kind}}, examples)}},
				"responses": object{"2XX": object{"description": "It was received, and is not sent again."},
					"410":     object{"description": "No more messages of this order are sent."},
					"default": object{"description": "It is sent again later, the same bytes under the same webhook-id."}}}}
		}
	}
	return all
}

// detailCodes are the values that details.code can have, of all operations.
func detailCodes(operations []operation) []string {
	var all []string
	for _, o := range operations {
		for _, e := range o.errors() {
			all = union(all, e.DetailCodes)
		}
	}
	slices.Sort(all)
	return all
}
