package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/client/output"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s (%v; -update accepts it): got\n%s", path, err, got)
	}
}

func first(a, _ string) string { return a }

func second(_, b string) string { return b }

// widest is how wide the longest line is.
func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, output.Width(strings.TrimRight(line, "\n")))
	}
	return most
}

// TestWhatAPersonSees holds the pages, and that their lines fit. The catalog is one that stays as it is.
func TestWhatAPersonSees(t *testing.T) {
	t.Parallel()
	g := gatewayOf(t, "testdata/tools.json")
	for _, width := range []int{60, 100} {
		for name, args := range map[string]string{"tools": "tools", "search_brands": "call search_brands",
			"get_brand":        "call get_brand brandId=3001",
			"list_menu_groups": "call list_menu_groups", "get_ddl": "call get_ddl", "sql": "call execute_read_sql sql=x",
			"create_menu_group": "call create_menu_group name=x slug=x --idempotency-key x", "show": "show search_campaigns"} {
			s := g.shell(t)
			s.width = width
			if s.run(strings.Fields(args)...); s.code != 0 || widest(s.out) > width && name != "show" {
				t.Errorf("%s at %d: %d %s, %d wide", args, width, s.code, s.err, widest(s.out))
			}
			golden(t, fmt.Sprintf("%s-%d.golden", name, width), s.out+"---\n"+s.err)
		}
	}
	for name, args := range map[string]string{"tools": "tools", "tools-csv": "tools -o csv", "search_brands-csv": "call search_brands -o csv",
		"search_brands-tabs": "call search_brands -o table --columns brand_id,contact.email", "save_message_draft": "show save_message_draft",
		"record-csv":   "call create_menu_group name=x slug=x --idempotency-key x -o csv",
		"contacts-csv": "call get_brand brandId=3001 -o csv --list contacts", "exit-codes": "help exit-codes"} {
		s := g.shell(t).run(strings.Fields(args)...)
		if s.code != 0 {
			t.Errorf("%s: %d %s", args, s.code, s.err)
		}
		golden(t, name+".golden", s.out)
	}
}

// TestEveryToolHasAPage: each tool of the catalog can be shown at any width, and its pages say nothing of how they were made.
func TestEveryToolHasAPage(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, width := range []int{20, 80} {
		s := g.shell(t)
		s.width = width
		for _, spec := range g.specs {
			if s.run("show", spec.Name); s.code != 0 || !strings.HasPrefix(s.out, spec.Name+"\n") || strings.Contains(s.out, "%!") {
				t.Errorf("%s: %d %s%s", spec.Name, s.code, s.out, s.err)
			}
			if s.run("call", spec.Name, "{}"); s.code != 0 || width > 0 && widest(s.out) > width {
				t.Errorf("%s at %d: %d %s, %d wide:\n%s", spec.Name, width, s.code, s.err, widest(s.out), s.out)
			}
		}
	}
	s := g.shell(t)
	if s.run("show", "get_brand", "--json"); !json.Valid([]byte(s.out)) || !strings.Contains(s.out, `"output_schema"`) {
		t.Errorf("%d %s", s.code, s.out)
	}
}

// TestCallSends: what is typed becomes the input by the tool's schema.
func TestCallSends(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "in.json")
	if err := os.WriteFile(file, []byte("{\"keyword\":\"@x\",\"limit\":1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, stdin, want string }{
		{"queue_for_review draftId=7", "", `{"draftId":"7"}`},
		{"search_brands keyword=12 limit=12", "", `{"keyword":"12","limit":12}`},
		{"search_campaigns statusCodes=1206,1209", "", `{"statusCodes":["1206","1209"]}`},
		{"search_brands", "", `{}`},
		{`search_brands {"limit":5}`, "", `{"limit":5}`},
		{"search_brands @" + file, "", `{"keyword":"@x","limit":1}`},
		{"search_brands @" + file + " limit=2", "", `{"keyword":"@x","limit":2}`},
		{"search_brands -", `{"limit":3}`, `{"limit":3}`},
		{"search_brands", `{"limit":4}`, `{"limit":4}`},
		{"search_brands", "\n", `{}`},
		{"search_brands limit=6", `{"limit":4}`, `{"limit":6}`}, // nothing is read that was not asked for
	} {
		s := g.shell(t)
		s.in, s.piped = c.stdin, c.stdin != ""
		if s.run(append([]string{"call"}, strings.Fields(c.args)...)...); s.code != 0 || first(g.sent()) != c.want {
			t.Errorf("%s: %d %s sent %s, want %s", c.args, s.code, s.err, first(g.sent()), c.want)
		}
	}
}

// TestCallDefaultsToJSON: a program gets the gateway's whole answer, as it is.
func TestCallDefaultsToJSON(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"ok":true,"data":{"n":12345678901234567890.10,"s":"a\u001b[31m`+"\u009b\u202e\xff"+`"}}`)
	})
	s := g.shell(t).run("call", "search_brands")
	if want := "{\n  \"ok\": true,\n  \"data\": {\n    \"n\": 12345678901234567890.10,\n    \"s\": " +
		"\"a\\u001b[31m\\u009b\\u202e\\ufffd\"\n  }\n}\n"; s.out != want {
		t.Errorf("%q", s.out)
	}
}

// TestAWriteHasAKey: it is printed before it can be needed, and an error says how to use it again.
func TestAWriteHasAKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	s := g.shell(t).run("call", "queue_for_review", "draftId=7")
	if want := "Idempotency-Key: " + second(g.sent()) + "\n"; s.code != 0 || s.err != want || len(second(g.sent())) != 26 {
		t.Errorf("%d %q, key %q", s.code, s.err, second(g.sent()))
	}
	if s.run("call", "queue_for_review", "draftId=7", "--idempotency-key", "mine"); second(g.sent()) != "mine" || s.err != "" {
		t.Errorf("%q %q", second(g.sent()), s.err)
	}
	if s.run("call", "search_brands"); second(g.sent()) != "" || s.err != "" {
		t.Errorf("a read sent the key %q: %s", second(g.sent()), s.err)
	}
	g.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Idempotent-Replayed", "true")
		reply(w, "queue_for_review", 1, map[string]any{"draft_id": "7"})
	})
	if s.run("call", "queue_for_review", "draftId=7", "--idempotency-key", "mine"); !strings.Contains(s.err, "nothing was written again") {
		t.Error(s.err)
	}
	for _, answer := range []func(http.ResponseWriter, *http.Request){
		func(w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "E_DB", "Try again.", "") },
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		hang,
	} {
		g.answers(answer)
		if s.run(
			"call",
			"queue_for_review",
			"draftId=7",
			"--timeout",
			"500ms",
		); s.code != exitUnavailable ||
			!strings.Contains(s.err, "--idempotency-key "+second(g.sent())) {
			t.Errorf("%d %s", s.code, s.err)
		}
	}
	if s.run("call", "queue_for_review", "draftId=7", "--idempotency-key", "a\nb"); s.code != exitUsage || second(g.sent()) == "a\nb" {
		t.Errorf("%d %s", s.code, s.err)
	}
}

// TestExitCodes: every code of Hub has a class of its own choosing, a hint and a place in the help.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	want := map[fault.Code]int{
		fault.Validation: 2, fault.BadAmount: 2, fault.AuthMissing: 3, fault.AuthInvalid: 3, fault.AuthExpired: 3, fault.AuthRevoked: 3,
		fault.Scope: 3, fault.AccountLinkMissing: 3, fault.NotFound: 4, fault.Conflict: 5, fault.Idempotency: 5, fault.Suppressed: 5,
		fault.RateLimit: 6, fault.DB: 7, fault.DBTimeout: 7, fault.Internal: 1,
	}
	g := newGateway(t)
	s := g.shell(t).run("help", "exit-codes")
	help := s.out
	for code, status := range fault.Codes() {
		if _, known := want[code]; !known {
			t.Errorf("%s: say what its exit code is", code)
		}
		g.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			refuse(w, status, string(code), "It is\x1b[31m so.\nReally.", `{"left":3}`)
		})
		s.run("call", "search_brands")
		lines := strings.Split(s.err, "\n")
		if s.code != want[code] || lines[0] != "hub: "+string(code)+": It is<U+001B>[31m so. Really. (req_1)" || lines[1] != "  left: 3" ||
			!strings.HasPrefix(lines[2], "hint: ") {
			t.Errorf("%s: %d, want %d: %q", code, s.code, want[code], s.err)
		}
		if !regexp.MustCompile(`\b` + string(code) + `\b`).MatchString(help) {
			t.Errorf("hub help exit-codes does not name %s", code)
		}
	}
	for status, want := range map[int]int{418: 1, 404: 4, 502: 7, 429: 6} {
		g.answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", status) })
		if s.run("call", "search_brands"); s.code != want || strings.Contains(s.err, "<html>") {
			t.Errorf("%d: %d %s", status, s.code, s.err)
		}
	}
	g.answers(func(w http.ResponseWriter, _ *http.Request) { refuse(w, 409, "E_OF_A_NEWER_GATEWAY", "So.", "") })
	if s.run("call", "search_brands"); s.code != exitConflict {
		t.Errorf("a code that is not known: %d", s.code)
	}
	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(504)
		fmt.Fprint(w, `{"ok":false,"error":{"code":"E_DB_TIMEOUT","message":"It was stopped.","retryable":false},"request_id":"req_1"}`)
	})
	if s.run("call", "search_brands"); s.code != exitUsage || !strings.Contains(s.err, "ask for less") || strings.Contains(s.err, "later") {
		t.Errorf("a statement that is too much: %d %s", s.code, s.err)
	}
	if s.interrupted = true; s.run("call", "search_brands").code != exitInterrupted || s.err != "" {
		t.Errorf("interrupted: %d %s", s.code, s.err)
	}
}

// TestErrorsNameWhatToFix: one line, and what to write instead.
func TestErrorsNameWhatToFix(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"tool":                                     {2, `unknown command "tool" for "hub"`},
		"call":                                     {2, "requires at least 1 arg"},
		"tools -o yaml":                            {2, "there are json, table and csv"},
		"tools --frob":                             {2, "unknown flag: --frob; hub --help says more"},
		"tools --url ftp://x":                      {2, "--url is no address, as https://hub.example.com is"},
		"tools --url http://hub.example.com":       {2, "could be read on its way: use https, or --allow-http"},
		"tools --url https://u:p@x":                {2, "--url has more than an address"},
		"call search_brand":                        {4, `there is no tool "search_brand": did you mean search_brands?`},
		"call search_brands categoryid=3":          {2, `did you mean categoryId? its fields are categoryId, countryCode`},
		"call search_brands limit=many":            {2, `limit has to be a number (integer), not "many"`},
		"call search_brands hasVerifiedContact=":   {2, `has to be true or false`},
		"call search_brands limit=1 limit=2":       {2, "limit is given twice"},
		"call search_brands beauty":                {2, `"beauty" is neither name=value nor an object of JSON`},
		"call search_brands {":                     {2, "the input is no JSON"},
		"call search_brands [1]":                   {2, "is JSON but no object"},
		"call search_brands @nowhere.json":         {2, "nowhere.json: no such file"},
		"call search_brands keyword=@home":         {2, "a text that begins with @ is written keyword=@@"},
		"call get_brand":                           {2, "get_brand needs brandId"},
		"call get_brand brandId=1 -o csv --list x": {2, "there is no list \"x\"; there is contacts, campaigns"},
		"call get_brand brandId=1 --columns x":     {2, "--columns and --list are for"},
		"call search_brands -o csv --columns x":    {2, `there is no "x"; there are brand_id`},
		"show nothing":                             {4, "There is no tool"},
		"login":                                    {2, "--key-stdin"},
	} {
		s := g.shell(t)
		if s.run(
			strings.Fields(args)...); s.code != want.code || !strings.Contains(s.err, want.text) || strings.Count(s.err, "\n") > 2 ||
			s.out != "" {
			t.Errorf("%s: %d %s%s", args, s.code, s.err, s.out)
		}
	}
	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		refuse(
			w,
			400,
			"E_VALIDATION",
			"/limit must be at most 200, and 1 more.",
			`{"violations":[{"path":"/limit","rule":"maximum","message":"must be at most 200"},{"path":"/keyword","message":"must be\u009b text"}]}`,
		)
	})
	s := g.shell(t).run("call", "search_brands", "limit=999")
	if want := "hub: E_VALIDATION: /limit must be at most 200, and 1 more. " +
		"(req_1)\n  /limit must be at most 200\n  /keyword must be<U+009B> text\n" +
		"hint: hub show search_brands says what it takes\n"; s.err != want {
		t.Errorf("%q", s.err)
	}
	for missing, want := range map[string]int{"HUB_URL": exitUsage, "HUB_API_KEY": exitDenied} {
		s := g.shell(t)
		delete(s.environ, missing)
		if s.run(
			"tools",
		); s.code != want ||
			s.err != "hub: "+missing+" is not set: hub login, or export "+missing+" (after make up: . .hub/dev.env)\n" {
			t.Errorf("%d %s", s.code, s.err)
		}
	}
}

// TestAHostileGateway: whatever it answers, the terminal stays as it is, and the key goes nowhere else.
func TestAHostileGateway(t *testing.T) {
	t.Parallel()
	steering := regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]")
	evil := "a\x1b]0;owned\x07\x1b[2J\u009b31m\u202eb\r\nc\td"
	g := newGateway(t)
	for i := range g.specs {
		g.specs[i].Description, g.specs[i].Examples[0].Title = evil+g.specs[i].Description, evil
		g.specs[i].Input = json.RawMessage(
			strings.ReplaceAll(string(g.specs[i].Input), `"description":"`, `"description":"\u001b[31m\u009b`),
		)
	}
	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		reply(
			w,
			evil,
			1,
			map[string]any{evil: evil, "list": []any{map[string]any{evil: evil, "o": map[string]any{"x\x1b": []string{evil}}}},
				"warnings": []any{map[string]any{"rule": evil, "message": evil}}},
		)
	})
	for _, width := range []int{0, 30, 200} {
		s := g.shell(t)
		s.width = width
		for _, args := range []string{"tools", "tools -o json", "show get_brand", "call search_brands -o table", "call search_brands -o json"} {
			if s.run(strings.Fields(args)...); s.code != 0 || steering.MatchString(strings.ReplaceAll(s.out+s.err, "\t", "")) {
				t.Errorf("%s at %d: %d %q %q", args, width, s.code, s.out, s.err)
			}
		}
	}
	odd := g.shell(t)
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"deep":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(`{"data":`, 20000)) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>\x1b[31m") },
		"nothing":  func(w http.ResponseWriter, _ *http.Request) {},
		"no data":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) },
		"a scalar": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":"x"}`) },
		"odd rows": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":{"columns":[1,{"name":null}],"rows":[[1,2,3,4],{"a":1},5,[]]}}`)
		},
		"odd warnings": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":{"warnings":[1,"x",{"rule":[]}]}}`)
		},
	} {
		g.answers(answer)
		for _, format := range []string{asJSON, asTable, asCSV} {
			odd.width = 40
			if odd.run(
				"call",
				"search_brands",
				"-o",
				format,
			); steering.MatchString(odd.out+odd.err) ||
				odd.code != 0 && !strings.HasPrefix(odd.err, "hub: ") {
				t.Errorf("%s: %d %q %q", name, odd.code, odd.out, odd.err)
			}
		}
	}
	g.answers(nil)
	g.lists(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(
			w,
			`{"data":{"tools":[null,{"name":"x `+
				`y\n","input_schema":{"properties":{"a":true,"b":{"type":["string","null"],"enum":[{}]}},"items":{}}}]}}`,
		)
	})
	s := g.shell(t)
	if s.run("tools"); s.code != 0 || steering.MatchString(strings.ReplaceAll(s.out, "\t", "")) {
		t.Errorf("%d %q", s.code, s.out)
	}
	if s.run("__complete", "call", ""); strings.Contains(s.out, "x y") {
		t.Errorf("%q", s.out)
	}
}

// TestVersion is that of the suite.
func TestVersion(t *testing.T) {
	t.Parallel()
	if s := shellOf(t, nil).run("--version"); !strings.HasPrefix(s.out, "hub "+release+" (") || s.code != 0 {
		t.Errorf("%s %q", release, s.out)
	}
}

// TestInterrupted: Ctrl-C ends a command that reads what nobody writes, and a command that ends by itself keeps its code.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	if code := interrupted(os.Interrupt, nil); code != exitInterrupted || time.Since(begun) > time.Minute {
		t.Errorf("%d after %s", code, time.Since(begun))
	}
	for ended, want := range map[int]int{0: 0, exitUnavailable: exitUnavailable, exitInterrupted: exitInterrupted} {
		done := make(chan int, 1)
		done <- ended
		if code := interrupted(os.Interrupt, done); code != want {
			t.Errorf("%d: %d", ended, code)
		}
	}
}

// TestCompletion offers tools, fields and values, of what was kept when the gateway is slow, and is quick about it.
func TestCompletion(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	s := g.shell(t)
	for args, want := range map[string]string{
		"call create_seg":                                  "",
		"call create_segment ":                             "name= kind= targets= description= createdBy=",
		"call create_segment name=x ":                      "kind= targets= description= createdBy=",
		"call create_segment kind=":                        "kind=partner kind=brand kind=campaign",
		"call search_brands hasVerifiedContact=":           "hasVerifiedContact=true hasVerifiedContact=false",
		"call nothing ":                                    "",
		"call search_brands nothing=":                      "",
		"call search_brands -o ":                           "json table csv",
		"completion ":                                      "bash fish powershell zsh",
		"call search_campaigns statusCodes=1 statusCodes=": "",
	} {
		s.run(append([]string{"__complete"}, strings.Split(args, " ")...)...)
		var offers []string
		for line := range strings.Lines(s.out) {
			if offer, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(offer, ":") {
				offers = append(offers, offer)
			}
		}
		if args == "call create_seg" {
			if !slices.Contains(offers, "create_segment") || slices.Contains(offers, "create_menu_group") ||
				len(offers) != g.allowed() {
				t.Errorf("%s: %q", args, offers)
			}
		} else if got := strings.Join(offers, " "); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	if n := len(g.takeAsked()); n != 1 {
		t.Errorf("the catalog was asked for %d times", n)
	}
	g.lists(hang)
	s.now = s.now.Add(2 * completionAge)
	begun := time.Now()
	if s.run("__complete", "show", ""); !strings.Contains(s.out, "search_brands") || time.Since(begun) > time.Minute {
		t.Errorf("%s after %s", s.out, time.Since(begun))
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if s.run("completion", shell); s.code != 0 || !strings.Contains(s.out, "__complete") {
			t.Errorf("%s: %d %s", shell, s.code, s.err)
		}
	}
}

// TestTheCatalogIsKept: calls in a row ask for it once, and what it does not know is asked for anew.
func TestTheCatalogIsKept(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	s := g.shell(t)
	for range 3 {
		s.run("call", "search_brands", "limit=1")
	}
	if got := g.takeAsked(); !slices.Equal(
		got,
		[]string{"GET /api/tools", "POST /api/tools/search_brands", "POST /api/tools/search_brands", "POST /api/tools/search_brands"},
	) {
		t.Errorf("%q", got)
	}
	newer := *g.spec("search_brands")
	newer.Name, newer.Input = "search_more", json.RawMessage(strings.Replace(string(newer.Input), `"keyword"`, `"word"`, 1))
	g.specs = append(g.specs, newer)
	g.lists(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match")
		g.list(w, r)
	})
	if s.run("call", "search_more", "word=x"); s.code != 0 || first(g.sent()) != `{"word":"x"}` {
		t.Errorf("%d %s%s", s.code, s.err, first(g.sent()))
	}
	names, err := os.ReadDir(s.environ["HUB_CACHE_DIR"])
	if err != nil || len(names) != 1 || strings.Contains(names[0].Name(), goodKey) {
		t.Errorf("%v %v", names, err)
	}
	info, err := names[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestLogin: a key is tried before it is kept, kept where its owner alone reads it, and sent nowhere else.
func TestLogin(t *testing.T) {
	t.Parallel()
	g, other := newGateway(t), newGateway(t)
	s := shellOf(t, nil)
	s.typed = []string{g.URL + "/", " " + goodKey + " "}
	tools := fmt.Sprintf("%d of %d tools", g.allowed(), len(g.specs))
	if s.run("login"); s.code != 0 || !strings.Contains(s.err, tools) || strings.Contains(s.err+s.out, goodKey) {
		t.Fatalf("%d %s%s", s.code, s.err, s.out)
	}
	path := filepath.Join(s.environ["HUB_CONFIG_DIR"], "login.json")
	for of, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(of); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", of, info.Mode(), err)
		}
	}
	s.typed = nil
	if s.run("tools"); s.code != 0 {
		t.Errorf("%d %s", s.code, s.err)
	}
	if s.run(
		"whoami",
	); !strings.Contains(s.out, g.URL) || !strings.Contains(s.out, "of hub login") || !strings.Contains(s.out, "admin:read author") ||
		strings.Contains(s.out, goodKey) {
		t.Errorf("%s", s.out)
	}
	if s.run(
		"tools",
		"--url",
		other.URL,
	); s.code != exitDenied || len(other.takeAsked()) > 0 ||
		!strings.Contains(s.err, "has no key for "+other.URL) {
		t.Errorf("%d %s", s.code, s.err)
	}
	s.in = "crm_bad\n"
	if s.run("login", "--url", other.URL, "--key-stdin"); s.code != exitDenied || !strings.Contains(s.err, "nothing was kept") {
		t.Errorf("%d %s", s.code, s.err)
	}
	s.in = goodKey + "\nmore"
	if s.run("login", "--url", other.URL, "--key-stdin"); s.code != 0 {
		t.Errorf("%d %s", s.code, s.err)
	}
	other.takeAsked()
	if s.run("tools"); len(other.takeAsked()) != 1 {
		t.Errorf("the last log-in is not the current one: %s", s.err)
	}
	s.environ["HUB_API_KEY"] = "crm_bad"
	if s.run("tools", "--url", g.URL); s.code != exitDenied || !strings.Contains(s.err, "is that of HUB_API_KEY") {
		t.Errorf("the environment comes first: %d %s", s.code, s.err)
	}
	delete(s.environ, "HUB_API_KEY")
	s.environ["HUB_API_KEY_FILE"] = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(s.environ["HUB_API_KEY_FILE"], []byte(goodKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.run("whoami", "--url", g.URL); s.code != 0 || !strings.Contains(s.out, "of HUB_API_KEY_FILE") {
		t.Errorf("%d %s", s.code, s.err)
	}
	delete(s.environ, "HUB_API_KEY_FILE")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if s.run("tools"); s.code != exitUsage || !strings.Contains(s.err, "can be read by others (mode 0640): chmod 600") {
		t.Errorf("%d %s", s.code, s.err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.run("logout", "--url", other.URL)
	}
	if !strings.Contains(s.err, "no key to forget") {
		t.Error(s.err)
	}
	if s.run("logout", "--url", g.URL); s.code != 0 {
		t.Error(s.err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%v: the last key is forgotten", err)
	}
}
