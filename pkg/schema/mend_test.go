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
		"last-campaign-before": "lastCampaignBefore", "categoryIds": "categoryId", "categories": "categoryId",
		"lastCampaingAfter": "lastCampaignAfter", "page": "", "q": "", "": "", "id": "", "президент": "",
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
	SegmentID  string   `json:"segmentId"`
	Keyword    string   `json:"keyword"`
	Limit      int64    `json:"limit"`
	CategoryID *int64   `json:"categoryId"`
	Wanted     bool     `json:"wanted"`
	Codes      []string `json:"codes"`
	Ids        []int64  `json:"ids"`
	Kind       string   `json:"kind"`
	Since      string   `json:"since"`
	Rows       []row    `json:"rows"`
}

type row struct {
	ID   int64   `json:"id"`
	Name *string `json:"name"`
}

func lookedBinding() *schema.Binding[looked] {
	return schema.Bind[looked](schema.Object(
		schema.Required(
			"segmentId",
			schema.String(""),
		),
		schema.Optional("keyword", schema.String("")),
		schema.Optional("limit", schema.Integer("", schema.Range(1, 200), schema.Default(50))),
		schema.Optional("categoryId", schema.Integer("")),
		schema.Optional("wanted", schema.Boolean("")),
		schema.Optional("codes", schema.Array("", schema.String(""))),
		schema.Optional("ids", schema.Array("", schema.Integer(""))),
		schema.Optional("kind", schema.String("", schema.Enum("ko", "en", "ACTIVE"))),
		schema.Optional("since", schema.String("", schema.Format(schema.ISODate))),
		schema.Optional("rows", schema.Array("", schema.Object(schema.Required("id", schema.Integer("")),
			schema.Optional("name", schema.String(""))))),
	))
}

func TestMessagesMend(t *testing.T) {
	t.Parallel()
	const all = "categoryId, codes, ids, keyword, kind, limit, rows, segmentId, since, wanted"
	const seconds = `, as of seconds since 1970: write "2026-05-23T00:00:00Z".`
	b := lookedBinding()
	for input, want := range map[string]string{
		`{"segmentId":"1","category_id":12}`: "/category_id is not a property of this input; " +
			"did you mean categoryId? Here it has " + all + ".",
		`{"segmentId":"1","q":"x"}`:        "/q is not a property of this input; did you mean keyword? Here it has " + all + ".",
		`{"segmentId":"1","page_size":20}`: "/page_size is not a property of this input; did you mean limit? Here it has " + all + ".",
		`{"segmentId":"1","filters":{}}`: "/filters is not a property of this input; " +
			"each condition is a member of the input itself. Here it has " + all + ".",
		`{"segmentId":"1","page":2}`:       "/page is not a property of this input; here it has " + all + ".", // which has no offset
		`{"segmentId":"1","since":"soon"}`: "",
		`{"segmentId":"1","zzz":12}`:       "/zzz is not a property of this input; here it has " + all + ".",
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
		`{"segmentId":"1","codes":"1209"}`:  "/codes must be an array, not a string: write [\"1209\"].",
		`{"segmentId":"1","codes":[1209]}`:  `/codes/0 must be a string, not a number: write "1209".`,
		`{"segmentId":"1","keyword":null}`: "/keyword must be a string, not null: " +
			"leave it out when there is nothing to say.",
		`{"segmentId":null}`:                      "/segmentId must be a string, not null.",
		`{"segmentId":7.5}`:                       `/segmentId must be a string, not a number: write "7.5".`,
		`{"segmentId":"1","codes":"1209,1210"}`:   `/codes must be an array, not a string: write ["1209", "1210"].`,
		`{"segmentId":"1","codes":"[\"1209\"]"}`:  `/codes must be an array, not a string: send the JSON itself, not a text that holds it.`,
		`{"segmentId":"1","ids":"12, 13"}`:        `/ids must be an array, not a string: write [12, 13].`,
		`{"segmentId":"1","ids":12}`:              `/ids must be an array, not a number: write [12].`,
		`{"segmentId":"1","rows":{"id":1}}`:       `/rows must be an array, not an object: write [{...}].`,
		`{"segmentId":"1","wanted":1}`:            `/wanted must be a boolean, not a number: write true.`,
		`{"segmentId":"1","since":20261126}`:      `/since must be a string, not a number: write "2026-11-26".`,
		`{"segmentId":"1","since":1779494400}`:    "/since must be a string, not a number" + seconds,
		`{"segmentId":"1","since":1779494400123}`: "/since must be a string, not a number" + seconds,
		`{"segmentId":"1","since":5}`:             `/since must be a string, not a number: write a date such as "2026-01-31".`,
		`{"segmentId":"1","since":"20261126"}`: `/since must be a date 2026-01-31, a time 2026-01-31T09:00:00, which is UTC, or an RFC 3339 ` +
			`time such as 2026-01-31T09:00:00+09:00: write "2026-11-26".`,
		`{"segmentId":true}`:                                      "/segmentId must be a string, not a boolean: write \"true\".",
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
