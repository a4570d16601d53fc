package v1_test

import (
	"encoding/json"
	"testing"

	"hub.internal/pkg/schema"
	"hub.internal/services/gateway/v1"
)

// FuzzAValueOfThePathHolds: whatever a body says, an input that is taken has the path's value.
func FuzzAValueOfThePathHolds(f *testing.F) {
	for _, body := range []string{``, `{}`, `{"amount":1}`, `{"orderId":"o_2"}`, `,"x":1}`, `}{`, `{,}`, `{"amount":1,"orderId":"o_2"}`,
		"\ufeff{}", `[{}]`, `{"orderid":"x"}`, `{"amount":1}}`, "{\x00}"} {
		f.Add([]byte(body))
	}
	validator, err := schema.Compile(
		schema.Object(schema.Required("orderId", schema.String("")), schema.Optional("amount", schema.Integer(""))),
	)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		input := v1.WithValue("orderId", "o_1", body)
		if validator.Validate(t.Context(), input) != nil {
			return
		}
		var in map[string]any
		if err := json.Unmarshal(input, &in); err != nil || in["orderId"] != "o_1" {
			t.Errorf("%q is taken as %v (%v)", body, in, err)
		}
	})
}
