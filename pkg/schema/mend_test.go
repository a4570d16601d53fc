package schema_test

import (
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/schema"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{
		"categoryId",
		"countryCode",
		"hasVerifiedContact",
		"keyword",
		"lastCampaignAfter",
		"lastCampaignBefore",
		"limit",
		"offset",
	}
	for name, want := range map[string]string{
		"category_id": "categoryId", "CATEGORYID": "categoryId", "categroyId": "categoryId", "category": "categoryId", "country": "countryCode",
		"has_verified_contact": "hasVerifiedContact", "keywords": "keyword", "Limit": "limit", "ofset": "offset",
		"last-campaign-before": "lastCampaignBefore",
		"lastCampaingAfter":    "lastCampaignAfter", "page": "", "q": "", "": "", "id": "", "президент": "",
		strings.Repeat("x", 5000): "",
	} {
		if got := schema.Nearest(name, known); got != want {
			t.Errorf("%.40q: %q, want %q", name, got, want)
		}
	}
	if got := schema.Nearest("brands", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}

type looked struct {
	SegmentID  schema.IDText `json:"segmentId"`
	Keyword    string        `json:"keyword"`
	Limit      int64         `json:"limit"`
	CategoryID *int64        `json:"categoryId"`
	Wanted     bool          `json:"wanted"`
	Codes      []string      `json:"codes"`
}

func lookedBinding() *schema.Binding[looked] {
	return schema.Bind[looked](schema.Object(
		schema.Required(
			"segmentId",
			schema.String(""),
		),
		schema.Optional("keyword", schema.String("")),
		schema.Optional("limit", schema.Integer("")),
		schema.Optional("categoryId", schema.Integer("")),
		schema.Optional("wanted", schema.Boolean("")),
		schema.Optional("codes", schema.Array("", schema.String(""))),
	))
}

func TestMessagesMend(t *testing.T) {
	t.Parallel()
	const all = "categoryId, codes, keyword, limit, segmentId, wanted"
	b := lookedBinding()
	for input, want := range map[string]string{
		`{"segmentId":"1","category_id":12}`: "/category_id is not a property of this input; " +
			"did you mean categoryId? Here it has " + all + ".",
		`{"segmentId":"1","zzz":12}`: "/zzz is not a property of this input; here it has " + all + ".",
		`{"input":{"segmentId":"1"}}`: "/input wraps the input: send the fields themselves as the body; " +
			"here it has " + all + ".",
		`{"Arguments":{"segmentId":"1"}}`: "/Arguments wraps the input: send the fields themselves as the body; " +
			"here it has " + all + ".",
		`{"params":{}}`: "/params wraps the input: send the fields themselves as the body; " +
			"here it has " + all + ".",
		`{"segmentId":"1","params":[]}`:     "/params is not a property of this input; here it has " + all + ".",
		`{"segmentId":"1","limit":"20"}`:    "/limit must be an integer, not a string: write 20 without quotes.",
		`{"segmentId":"1","limit":"many"}`:  "/limit must be an integer, not a string.",
		`{"segmentId":"1","wanted":"true"}`: "/wanted must be a boolean, not a string: write true without quotes.",
		`{"segmentId":"1","codes":"1209"}`:  "/codes must be an array, not a string: write [value].",
		`{"segmentId":"1","codes":[1209]}`:  `/codes/0 must be a string, not a number: write "1209".`,
		`{"segmentId":"1","keyword":null}`: "/keyword must be a string, not null: " +
			"leave it out when there is nothing to say.",
		`{"segmentId":null}`:                                      "/segmentId must be a string, not null.",
		`{"segmentId":7.5}`:                                       "/segmentId must be a string, or a whole number of 64 bits.",
		`{"segmentId":99999999999999999999}`:                      "/segmentId must be a string, or a whole number of 64 bits.",
		`{"segmentId":true}`:                                      "/segmentId must be a string, not a boolean.",
		`{"segmentId":"1","keyword":7}`:                           `/keyword must be a string, not a number: write "7".`,
		`{"segmentId":"1","keyword":` + "\"\xff\"" + `}`:          "",
		`{"segmentId":"1","` + strings.Repeat("x", 5000) + `":1}`: "",
	} {
		f := b.Validate(t.Context(), []byte(input))
		if f == nil {
			t.Errorf("%.80s is taken", input)
		} else if want != "" && f.Message != want {
			t.Errorf("%s\n got %s\nwant %s", input, f.Message, want)
		}
	}
}

// TestIDsComeAsNumbersToo: the edge, which has the schema alone, and the owner are of one mind.
func TestIDsComeAsNumbersToo(t *testing.T) {
	t.Parallel()
	b := lookedBinding()
	for input, want := range map[string]schema.IDText{
		`{"segmentId":7}`: "7", `{"segmentId":7.0}`: "7", `{"segmentId":"7"}`: "7", `{"segmentId":"\u0037"}`: "7", `{"segmentId":-7}`: "-7",
		`{"segmentId":9223372036854775807}`: "9223372036854775807", `{"segmentId":"seven"}`: "seven", `{"segmentId":""}`: "",
	} {
		if in, f := b.Decode(t.Context(), []byte(input)); f != nil || in.SegmentID != want {
			t.Errorf("%s: %q %v", input, in.SegmentID, f)
		}
	}
	names := schema.NumbersFor[looked]()
	if len(names) != 1 || names[0] != "segmentId" {
		t.Fatal(names)
	}
	edge, err := schema.Compile(
		schema.Object(schema.Optional("segmentId", schema.String("")), schema.Optional("limit", schema.Integer(""))),
	)
	if err != nil {
		t.Fatal(err)
	}
	if f := edge.Validate(t.Context(), []byte(`{"segmentId":7}`)); f == nil {
		t.Error("a number is taken where nobody has said so")
	}
	if err := edge.TakeNumbers(names...); err != nil {
		t.Fatal(err)
	}
	if f := edge.Validate(t.Context(), []byte(`{"segmentId":7}`)); f != nil {
		t.Error(f)
	}
	for _, name := range []string{"limit", "nothing"} {
		if err := edge.TakeNumbers(name); err == nil {
			t.Errorf("%s is no string", name)
		}
	}
}

func TestTimesAsAnswersHaveThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-01-31T09:00:00":        time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC),
		"2026-01-31T09:00:00.250000": time.Date(2026, 1, 31, 9, 0, 0, 250_000_000, time.UTC),
		"2026-01-31T09:00:00.000Z":   time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC),
	} {
		if got, err := schema.ParseISODate(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}

// TestNullsOfRoutes: where a validator takes them, null stands for an optional member alone.
func TestNullsOfRoutes(t *testing.T) {
	t.Parallel()
	s := schema.Object(
		schema.Required("code", schema.String("")),
		schema.Optional("amount", schema.Integer("")),
		schema.Optional(
			"list",
			schema.Array("", schema.String("")),
		),
		schema.Optional("inner", schema.Object(schema.Optional("x", schema.String("")))),
	)
	v, err := schema.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	const nulls = `{"code":"c","amount":null,"list":null,"inner":{"x":null}}`
	if v.Validate(t.Context(), []byte(nulls)) == nil {
		t.Error("a tool takes null")
	}
	v.TakeNulls()
	for input, ok := range map[string]bool{nulls: true, `{"code":null}`: false, `{"code":"c","list":[null]}`: false, `null`: false,
		`{"code":"c","none":null}`: false} {
		if f := v.Validate(t.Context(), []byte(input)); (f == nil) != ok {
			t.Errorf("%s: %v", input, f)
		}
	}
}
