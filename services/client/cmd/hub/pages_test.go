package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// brands answers as search_brands does, of a table with this many rows; the second request is one too many.
func brands(rows int) (answer func(http.ResponseWriter, *http.Request), asked *atomic.Int64, g *gateway) {
	asked, g = &atomic.Int64{}, &gateway{}
	return func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 2 {
			w.Header().Set("Retry-After", "1")
			refuse(w, 429, "E_RATE_LIMIT", "Too many calls.", "")
			return
		}
		var in struct{ Limit, Offset int }
		body, _ := g.sent()
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			panic(err)
		}
		page := []map[string]any{}
		for i := in.Offset; i < min(in.Offset+in.Limit, rows); i++ {
			page = append(page, map[string]any{"brand_id": json.Number(fmt.Sprint(9007199254740993 + i)), "brand_name": fmt.Sprint("b", i),
				"last": []any{nil, map[string]int{"id": i}}[min(i/200, 1)]})
		}
		reply(w, "search_brands", len(page), map[string]any{"brands": page, "has_more": in.Offset+in.Limit < rows,
			"warnings": []map[string]string{{"rule": "r", "message": "told once"}}})
	}, asked, g
}

// TestAllReadsEveryPage: each row once, in order, as it comes, whatever the gateway's limit of a page and of calls.
func TestAllReadsEveryPage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct{ first, last, said string }{
		"":                         {`{"brand_id":9007199254740993,"brand_name":"b0","last":null}`, `"brand_name":"b449","last":{"id":449}}`, ""},
		"-o csv":                   {"brand_id,brand_name,last", "9007199254741442,b449,", "the first page has no last.id"},
		"-o csv --columns last.id": {"last.id", "449", ""},
		"--jq .brand_name":         {"b0", "b449", ""},
		"--jq .brand_id limit=60":  {"9007199254740993", "9007199254741442", ""},
		`{"offset":"440"}`:         {`{"brand_id":9007199254741433,"brand_name":"b440","last":{"id":440}}`, `"last":{"id":449}}`, ""},
		`{"offset":4.4e2}`:         {`{"brand_id":9007199254741433,"brand_name":"b440","last":{"id":440}}`, `"last":{"id":449}}`, ""},
		"offset=440":               {`{"brand_id":9007199254741433,"brand_name":"b440","last":{"id":440}}`, `"last":{"id":449}}`, ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			real := newGateway(t)
			answer, asked, fake := brands(450)
			real.answers(func(w http.ResponseWriter, r *http.Request) {
				fake.body, _ = real.sent()
				answer(w, r)
			})
			s := real.shell(t).run(append([]string{"call", "search_brands", "--all"}, strings.Fields(args)...)...)
			lines := strings.Split(strings.TrimSuffix(s.out, "\n"), "\n")
			rows := 450
			if strings.Contains(args, "csv") {
				rows++
			}
			if strings.Contains(args, "offset") {
				rows = 10
			}
			if s.code != 0 || len(lines) != rows || lines[0] != want.first || !strings.HasSuffix(lines[len(lines)-1], want.last) {
				t.Fatalf("%d, %d lines after %d requests: %s … %s\n%s", s.code, len(lines), asked.Load(), lines[0], lines[len(lines)-1], s.err)
			}
			if strings.Count(s.err, "told once") != 1 || !strings.Contains(s.err, want.said) {
				t.Errorf("%s", s.err)
			}
		})
	}
}

// TestAllLeavesNothingWithoutAValue: a column that later pages have in place of those within it, and of which they have nothing, is no
// column that is left out.
func TestAllLeavesNothingWithoutAValue(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		body, _ := g.sent()
		row := map[string]any{"brand_id": 1, "last_campaign": map[string]int{"campaign_id": 2}}
		if strings.Contains(body, `"offset":1`) {
			row = map[string]any{"brand_id": 3, "last_campaign": nil}
		}
		reply(w, "search_brands", 1, map[string]any{"brands": []any{row}, "has_more": row["brand_id"] == 1})
	})
	s := g.shell(t).run("call", "search_brands", "--all", "-o", "csv")
	if want := "brand_id,last_campaign.campaign_id\n1,2\n3,\n"; s.code != 0 || s.out != want || s.err != "" {
		t.Errorf("%d %q, want %q: %s", s.code, s.out, want, s.err)
	}
}

// TestAllSaysWhatItLeaves: a bound is no silent end, and what cannot be read so is refused before it is called.
func TestAllSaysWhatItLeaves(t *testing.T) {
	t.Parallel()
	real := newGateway(t)
	answer, _, fake := brands(450)
	real.answers(func(w http.ResponseWriter, r *http.Request) {
		fake.body, _ = real.sent()
		answer(w, r)
	})
	s := real.shell(t)
	s.run("call", "search_brands", "--all", "--max-rows", "250")
	if s.code != exitOther || strings.Count(s.out, "\n") != 250 ||
		!strings.Contains(s.err, "there are more than 250 rows, and the rest was not read: --max-rows reads more, offset=250 reads on") {
		t.Errorf("%d: %d lines: %s", s.code, strings.Count(s.out, "\n"), s.err)
	}
	real.takeAsked()
	for args, want := range map[string]string{
		"call get_brand brandId=1 --all":          "--all: get_brand answers in one piece; with pages there are search_brands, search_campaigns",
		`call search_brands --all {"offset":"x"}`: `--all: offset has to be a whole number, not "x"`,
		`call search_brands --all {"limit":true}`: "--all: limit has to be a whole number, not true",
		`call search_brands --all {"limit":1.5}`:  "--all: limit has to be a whole number, not 1.5",
		"call search_brands --all -o table":       "-o json has one to a line",
		"call search_brands --all --max-rows 0":   "--max-rows is 0",
		"call search_brands --jq .[ -o json":      "--jq: unexpected EOF",
		"call search_brands --jq . -o csv":        "--jq is for -o json",
		"call search_brands --jq nothing":         "--jq: function not defined: nothing/0",
		"api GET /api/tools --jq .data.tools.x":   "--jq: expected an object but got: array",
		"call search_brands --all --jq .a.b=1|x":  "--jq: ",
	} {
		if s.run(strings.Fields(args)...); s.code != exitUsage || !strings.HasPrefix(s.err, "hub: ") || !strings.Contains(s.err, want) ||
			strings.Count(s.err, "\n") != 1 {
			t.Errorf("%s: %d %s", args, s.code, s.err)
		}
	}
	for _, asked := range real.takeAsked() {
		if strings.HasPrefix(asked, "POST") {
			t.Errorf("asked %s", asked)
		}
	}
}

// TestAPICallsAnyRoute: with the key, with fields, with a body of three kinds, and with the exit code of the answer.
func TestAPICallsAnyRoute(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	s := g.shell(t)
	for args, want := range map[string]string{
		"api post /api/tools/search_brands -F limit=5 -f keyword=7":           `{"keyword":"7","limit":5}`,
		"api POST /api/tools/search_brands -d {\"limit\":5}":                  `{"limit":5}`,
		"api POST /api/tools/search_brands -d -":                              `{"limit":6}`,
		"api POST /api/tools/search_brands --jq .data.brands|length":          `{"limit":6}`,
		"api POST /api/tools/create_segment --idempotency-key mine -F ids=[]": `{"ids":[]}`,
	} {
		s.in, s.piped = `{"limit":6}`, true
		s.run(strings.Fields(args)...)
		body, key := g.sent()
		isNamed := strings.Contains(args, "mine")
		if s.code != 0 || body != want || isNamed != (key == "mine") || isNamed == strings.Contains(s.err, "Idempotency-Key: "+key) {
			t.Errorf("%s: %d %s %q %s", args, s.code, body, key, s.err)
		}
		isFiltered := strings.Contains(args, "--jq")
		if isFiltered && strings.TrimSpace(s.out) == "" || !isFiltered && !strings.Contains(s.out, `"ok": true`) {
			t.Errorf("%s: %s", args, s.out)
		}
	}
	s.piped = false
	g.takeAsked()
	s.run("api", "GET", "/api/tools/get_brand/detail?x=1", "-f", "a=b c")
	if asked := g.takeAsked(); s.code != 0 || asked[0] != "GET /api/tools/get_brand/detail" {
		t.Errorf("%d %s", s.code, s.err)
	}
	for args, want := range map[string]struct {
		code int
		said string
	}{
		"api GET /api/tools/nothing":                      {exitNotFound, "E_NOT_FOUND"},
		"api TRACE /api/tools":                            {exitUsage, "TRACE is no method: there are GET, POST"},
		"api GET /v1/../x":                                {exitUsage, "is no path of the gateway"},
		"api GET api/tools":                               {exitUsage, `"api/tools" is no path of the gateway`},
		"api GET //evil.example/x":                        {exitUsage, "is no path of the gateway"},
		"api GET https://evil.example/x":                  {exitUsage, "is no path of the gateway"},
		"api GET /api/tools -d {}":                        {exitUsage, "a GET has no body"},
		"api POST /api/tools/search_brands -d {} -f a=b":  {exitUsage, "-d is the whole body"},
		"api POST /api/tools/search_brands -f a":          {exitUsage, `"a" is no field`},
		"api POST /api/tools/search_brands -F a=b":        {exitUsage, "its value is no JSON"},
		"api POST /api/tools/search_brands -f a=b -f a=c": {exitUsage, "a is given twice"},
		"api POST /api/tools/search_brands -d @/nowhere":  {exitUsage, "/nowhere"},
		"api POST /api/tools/search_brands -d []":         {exitUsage, "the body"},
	} {
		s.run(strings.Fields(args)...)
		if s.code != want.code || !strings.Contains(s.err, want.said) {
			t.Errorf("%s: %d %s", args, s.code, s.err)
		}
	}
}
