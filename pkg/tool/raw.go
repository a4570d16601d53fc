package tool

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"hub.internal/pkg/schema"
)

const (
	// MaxRawBody bounds the body of a raw request, and of its answer, in bytes.
	MaxRawBody = 64 << 10
	// MaxRawQuery bounds the query of a raw request, in bytes.
	MaxRawQuery = 8 << 10
	// rawRest bounds what the input of a raw route has beside its body, in bytes: its query may be text of which a
	// byte becomes several.
	rawRest = 64 << 10
)

// RawRequest is a request as it was sent, for a route in RawForm: whatever it holds, and whatever it says that this is.
// The owner's input has these members (RawInput) beside the values of the path. No header comes along but Content-Type.
// A path that takes several methods is as many routes, which may have one function.
type RawRequest struct {
	Method      string `json:"method"`
	ContentType string `json:"contentType"`
	// Query is raw, as behind the ? of the address.
	Query string `json:"query"`
	// Body is in base64; Bytes decodes it.
	Body string `json:"body"`
}

// Bytes is the body as it was sent. It returns E_VALIDATION for one that is not in base64, which the gateway never sends.
func (r RawRequest) Bytes() ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(r.Body)
	if err != nil {
		return nil, schema.Invalid("/body", "base64", "is not in base64")
	}
	return b, nil
}

// RawInput is the schema of a raw route's input: the values of its path, and a RawRequest.
func RawInput(values ...schema.Property) *schema.Schema {
	return schema.Object(append(values,
		schema.Required("method", schema.String("How it was sent.", schema.Enum(http.MethodGet, http.MethodPost))),
		schema.Required("contentType", schema.String("What the body says that it is.")),
		schema.Required("query", schema.String("The raw query.")),
		schema.Required("body", schema.String("The body, in base64.")))...)
}

// RawAnswer is the answer of a route in RawForm. It is written as it is, without an envelope. A failure is an error, as
// everywhere, and is answered in one line of text; or, where a caller wants to be refused in its own form, a status of 400 to 599.
type RawAnswer struct {
	// Status is one of the route's Success, the first when it is 0, or one of 400 to 599.
	Status int `json:"status"`
	// ContentType is text/plain, text/html or application/json, with or without charset=utf-8.
	ContentType string `json:"contentType"`
	// Location is where a 303 leads: a path of Hub's, or an address at another host, which the owner has checked, with
	// https (http on the same machine alone).
	Location string `json:"location"`
	// Body is in base64.
	Body []byte `json:"body"`
}

// MaxInput is what the owner of a route has to read at most, in bytes.
func (s RouteSpec) MaxInput() int64 {
	if s.Form == RawForm {
		return s.MaxBody*4/3 + rawRest
	}
	return s.MaxBody
}

func (s RouteSpec) checkForm(input *schema.Schema) error {
	switch {
	case s.Form == JSONForm:
		return nil
	case s.Form != RawForm:
		return fmt.Errorf("the form %q is not known", s.Form)
	case s.Method != http.MethodGet && s.Method != http.MethodPost:
		return fmt.Errorf("a raw route cannot be a %s", s.Method)
	case s.Idempotency != KeyIgnored:
		return errors.New("a raw route has no Idempotency-Key")
	case s.MaxBody > MaxRawBody:
		return fmt.Errorf("a raw body has at most %d bytes", MaxRawBody)
	}
	for _, name := range []string{"method", "contentType", "query", "body"} {
		if member := input.Properties[name]; member == nil || member.Type != "string" || !slices.Contains(input.Required, name) {
			return fmt.Errorf("%s is no required string of the input", name)
		}
	}
	return nil
}
