package tool_test

import (
	"context"
	"fmt"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// A tool is a declaration and a typed function: what comes in is judged by the schema before the
// function sees it, and what the gateway, the catalog and the tests need to know is in the Spec.
func ExampleNew() {
	type input struct {
		City string `json:"city"`
		Days int64  `json:"days"`
	}
	type forecast struct {
		City string   `json:"city" jsonschema:"The city"`
		Days []string `json:"days" jsonschema:"One word a day"`
	}
	weather := tool.New(tool.Declaration{
		Name: "get_forecast", Category: tool.Query, Scope: "query", Position: 1, Timeout: time.Second,
		Description: "The weather of the next days.",
		Input: schema.Object(
			schema.Required("city", schema.String("Name of the city.", schema.Length(1, 50))),
			schema.Optional("days", schema.Integer("How many days.", schema.Range(1, 7), schema.Default(2)))),
	}, func(_ context.Context, in input) (forecast, error) {
		out := forecast{City: in.City}
		for range in.Days {
			out.Days = append(out.Days, "sunny")
		}
		return out, nil
	})

	for _, body := range []string{`{"city":"Busan"}`, `{"days":8,"town":"Busan"}`} {
		answer, err := weather.Endpoint(context.Background(), &tool.Call{Tool: weather.Spec.Name, Input: []byte(body)})
		if err != nil {
			for _, v := range schema.ViolationsOf(err) {
				fmt.Println(v.Path, v.Message)
			}
			continue
		}
		fmt.Println(string(answer.(*tool.Result).Data))
	}
	// Output:
	// {"city":"Busan","days":["sunny","sunny"]}
	// /days must be at most 7
	// /town is not a property of this input; here it has city, days
	// /city is required
}
