package reference

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

// Files are the pages' templates, style and script, for the site that renders them.
//
//go:embed pages/*.html assets
var Files embed.FS

// Path is where the first page is; the others lie below it.
const Path = "/docs"

// Pages renders the API in the console's look, by the path of each page: a guide with an index of all tools and routes, what only
// Connected Apps have, and a page for each group of tools and routes. They are the same for everybody.
// The catalog renders them once for each version of it.
func (a API) Pages(site *web.Site) (map[string]*web.Static, error) {
	operations, err := a.operations()
	if err != nil {
		return nil, err
	}
	groups, err := groupsOf(operations)
	if err != nil {
		return nil, err
	}
	tokens, err := samples("servicejwt")
	if err != nil {
		return nil, err
	}
	notifications, err := samples("notification")
	if err != nil {
		return nil, err
	}
	// The order is that of the sidebar, and of the ways to the page before and the next.
	all := []chapter{
		{path: Path, template: "docs", title: "API reference",
			lead: fmt.Sprintf("Hub %s: %d tools for agents, and %d routes for Connected Apps.", a.Version, len(a.Tools), len(a.Routes)),
			parts: []web.Item{{Name: "Calling a tool", Href: "#calling"}, {Name: "Errors", Href: "#errors"}, {Name: "Limits", Href: "#limits"},
				{Name: "MCP clients", Href: "#mcp"}, {Name: "All tools and routes", Href: "#all"}},
			data: map[string]any{"Groups": groups, "Codes": codes(),
				"Call": block{"first-call", "A first call", curl("", ToolRoot+"search_brands", keyHeaders(),
					json.RawMessage(`{"hasVerifiedContact":true,"limit":2}`))},
				"Success": block{"first-success", "A success", line(envelope{true, "search_brands", 2, exampleRequestID, 3,
					json.RawMessage(`{"brands":["…","…"],"has_more":true}`)})},
				"Failure": block{"first-failure", "A failure", line(failures()[fault.Validation])},
				"Claude": block{"mcp-claude", "Claude Code",
					`claude mcp add --transport http hub "$HUB_URL/mcp" --header "Authorization: Bearer $HUB_API_KEY"`},
				"Servers": block{"mcp-servers", "A list of servers", servers}}},
		{path: Path + "/apps", template: "docs_apps", title: "Connected Apps", lead: "How an app signs its calls, and hears of its orders.",
			parts: []web.Item{{Name: "A ServiceJWT", Href: "#servicejwt"}, {Name: "Notifications", Href: "#notifications"}},
			data:  map[string]any{"Tokens": tokens, "Notifications": notifications, "Told": a.told()}},
	}
	for _, g := range groups {
		d := chapter{path: g.Href, template: "docs_group", title: g.Title, lead: g.Text, data: map[string]any{"Operations": g.Operations}}
		for _, o := range g.Operations {
			d.parts = append(d.parts, web.Item{Name: o.Name, Href: "#" + o.ID})
		}
		all = append(all, d)
	}
	return render(site, all)
}

// chapter is a page of the reference. parts are what stands on it, which the sidebar lists on this page alone.
// data goes to the template as it is, with a pager added by render.
type chapter struct {
	path, template, title, lead string
	parts                       []web.Item
	data                        map[string]any
}

// render renders chapters, each with a sidebar that leads to all, and with ways to the one before and to the next.
func render(site *web.Site, all []chapter) (map[string]*web.Static, error) {
	pages := make(map[string]*web.Static, len(all))
	for i, d := range all {
		tab := web.Tab{Slug: "docs", Name: "API reference"}
		for _, other := range all {
			tab.Items = append(tab.Items, web.Item{Name: other.title, Href: other.path, Group: "Pages"})
		}
		for _, part := range d.parts {
			tab.Items = append(tab.Items, web.Item{Name: part.Name, Href: d.path + part.Href, Group: "On this page"})
		}
		p := web.Page{Title: d.title, Tab: tab.Slug, Lead: d.lead, Data: d.data}
		pager := web.Pager{Label: "Pages of the reference"}
		if i > 0 {
			p.Crumbs = []web.Link{{Text: all[0].title, Href: Path}}
			pager.Back = web.Link{Text: "Previous: " + all[i-1].title, Href: all[i-1].path}
		}
		if i < len(all)-1 {
			pager.Next = web.Link{Text: "Next: " + all[i+1].title, Href: all[i+1].path}
		}
		d.data["Pager"] = pager
		page, err := site.RenderStatic(d.template, d.path, []web.Tab{tab}, p)
		if err != nil {
			return nil, err
		}
		pages[d.path] = page
	}
	return pages, nil
}

// told are the types of the messages to apps.
func (a API) told() (all []tool.NotificationType) {
	for _, n := range a.Notifications {
		all = append(all, n.Types...)
	}
	return all
}

// servers is what clients of the Model Context Protocol have in their settings.
// The key is read from the environment, so that the file can be shared.
const servers = `{
  "mcpServers": {
    "hub": {
      "url": "https://hub.example/mcp",
      "headers": {"Authorization": "Bearer ${env:HUB_API_KEY}"}
    }
  }
}`

// block is text to copy.
type block struct{ ID, Title, Code string }

// keyHeaders are those of a call of a tool, for a shell that has the key in HUB_API_KEY.
// They are one string, so that a command has them on one line.
func keyHeaders() []string {
	return []string{`-H "Authorization: Bearer $HUB_API_KEY" -H 'Content-Type: application/json'`}
}

// group is the operations of a category, or of routes with one first word.
type group struct {
	// Href is the page of the group.
	Href, Title, Text string
	Operations        []entry
}

// entry is an operation on the page.
type entry struct {
	ID, Name, Method, Path, Summary, Text string
	// Href is its place on the page of its group. Words are what it can be found by in the index, in small letters.
	Href, Words string
	// Badges say what a call has to show, and whether it writes.
	// An example: "scope author" and "writes: Idempotency-Key required".
	Badges []web.Badge
	// Input is a row for each member; Output has a table for each form that the data can have.
	Input []field
	// Output is a list of tables because data can have several forms (anyOf).
	Output   [][]field
	Errors   []refused
	Limits   []limit
	Examples []example
}

type (
	// refused is an error that an operation can answer.
	refused struct {
		tool.ErrorDoc
		Status int
	}
	// limit is a bound of an operation, by its name in the detail of a tool. The name tells the unit, as in max_bytes.
	limit struct {
		Name  string
		Value int64
	}
	// example is a call and its answer, as tests have executed it. ID is its anchor in the page, Curl a command that can be pasted
	// into a shell.
	example struct{ ID, Title, Curl, Answer string }
	// code is a row of the table of all errors. Again says whether the same call may succeed later, in words.
	code struct {
		Code   fault.Code
		Status int
		Again  string
		Text   string
	}
)

// groupsOf are the tools by category and the routes by their first word, in the order in which they come.
// A group has one page, at /docs/tools/query or /docs/routes/pay, and its operations have an anchor each there.
func groupsOf(operations []operation) ([]group, error) {
	var groups []group
	for _, o := range operations {
		e, err := o.entry()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		g := group{Href: Path + "/routes/" + o.group, Title: "Routes: " + tool.RouteRoot + o.group, Text: "For Connected Apps. A call carries " +
			"a ServiceJWT, which is good once: a retry has a new token and the same Idempotency-Key."}
		if o.isTool {
			g = group{Href: Path + "/tools/" + o.group, Title: "Tools: " + o.group, Text: groupText(o.group)}
		}
		e.Href, e.Words = g.Href+"#"+e.ID, e.words()
		i := slices.IndexFunc(groups, func(other group) bool { return other.Href == g.Href })
		if i < 0 {
			i, groups = len(groups), append(groups, g)
		}
		groups[i].Operations = append(groups[i].Operations, e)
	}
	return groups, nil
}

// entry is the operation on the page. Callers of a raw one are no programs of our readers'.
// A raw route has neither input, output nor examples there.
func (o operation) entry() (entry, error) {
	e := entry{ID: o.Name, Name: o.Name, Method: o.Method, Path: o.Path, Errors: statuses(o.errors()), Limits: limits(o.Spec),
		Summary: summary(o.Description) + ".", Text: o.Description, Badges: o.badges()}
	if o.Form == tool.RawForm {
		return e, nil
	}
	// The envelope of a route has no member tool; omitempty leaves it out.
	name := ""
	if o.isTool {
		name = o.Name
	}
	for i, x := range o.Examples {
		e.Examples = append(e.Examples, example{fmt.Sprintf("%s-curl-%d", o.Name, i+1), x.Title, o.curl(&x, i+1),
			indented(envelope{true, name, x.Count, exampleRequestID, 3, x.Data})})
	}
	if len(o.Examples) == 0 {
		e.Examples = []example{{ID: o.Name + "-curl", Title: "A call", Curl: o.curl(nil, 1)}}
	}
	var err error
	if e.Input, err = fields(o.RouteSpec.Input, ""); err != nil {
		return e, err
	}
	for i := range e.Input {
		// A member of an object is where the object is. first keeps the [] of a list of objects, which only a body has.
		first, _, _ := strings.Cut(e.Input[i].Name, ".")
		switch {
		case o.isTool: // all of it is in the body
		case slices.Contains(o.path, first):
			e.Input[i].In = "path"
		case slices.Contains(o.query, first):
			e.Input[i].In = "query"
		default:
			e.Input[i].In = "body"
		}
	}
	e.Output, err = alternatives(o.Output)
	return e, err
}

// words are what the operation can be found by: all that its article says but for its answers.
// The index on the first page searches in them, in the browser.
func (e entry) words() string {
	words := []string{e.Name, e.Method, e.Path, e.Text}
	for _, b := range e.Badges {
		words = append(words, b.Text)
	}
	for _, f := range e.Input {
		words = append(words, f.Name, f.Text)
	}
	for _, fields := range e.Output {
		for _, f := range fields {
			words = append(words, f.Name)
		}
	}
	for _, refusal := range e.Errors {
		words = append(words, string(refusal.Code))
	}
	for _, x := range e.Examples {
		words = append(words, x.Title)
	}
	return strings.ToLower(strings.Join(words, " "))
}

// badges say what a call has to show, and whether it writes.
// An operation has one for its credential, and one for its Idempotency-Key or for what it does.
func (o operation) badges() []web.Badge {
	badges := []web.Badge{{Text: "ServiceJWT"}}
	switch {
	case o.Credential == tool.NoCredential:
		badges[0].Text = "no credential"
	case o.Scope != "":
		badges[0].Text = "scope " + o.Scope
	}
	switch {
	case o.isTool && o.Write:
		badges = append(badges, web.Badge{Text: "writes: Idempotency-Key required", Kind: "warn"})
	case o.isTool:
		badges = append(badges, web.Badge{Text: "reads", Kind: "good"})
	case o.Idempotency != tool.KeyIgnored && o.Form != tool.RawForm:
		badges = append(badges, web.Badge{Text: "Idempotency-Key " + o.Idempotency, Kind: "warn"})
	}
	return badges
}

// statuses are errors with the status that each is answered with, the lowest first.
// An operation's errors of one status keep their order, the edge's first.
func statuses(errors []tool.ErrorDoc) (all []refused) {
	known := fault.Codes()
	for _, e := range errors {
		all = append(all, refused{e, known[e.Code]})
	}
	slices.SortStableFunc(all, func(a, b refused) int { return cmp.Compare(a.Status, b.Status) })
	return all
}

// limits are the bounds of an operation by name: those that all have, and its own.
// Each is in the unit that its name ends with.
func limits(s tool.Spec) []limit {
	known := map[string]int64{"max_body_bytes": s.MaxBody, "timeout_ms": s.TimeoutMS}
	maps.Copy(known, s.Limits)
	var all []limit
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, limit{name, known[name]})
	}
	return all
}

// maxLine is from how many characters on the body of an example has several lines.
const maxLine = 72

// curl is a call as a line of a shell.
// method is empty for GET and for POST, which curl chooses by itself: a request with -d is a POST.
func curl(method, path string, headers []string, body json.RawMessage) string {
	parts := []string{`curl -s "$HUB_URL` + path + `"`}
	if method != "" {
		parts[0] = "curl -s -X " + method + ` "$HUB_URL` + path + `"`
	}
	parts = append(parts, headers...)
	if body != nil {
		var b bytes.Buffer
		if err := json.Compact(&b, body); err == nil && b.Len() > maxLine {
			b.Reset()
			_ = json.Indent(&b, body, "", "  ") // what was compacted can be indented
		}
		// A quote within quotes of a shell is '\'': the string ends, an escaped quote follows, and another string begins.
		parts = append(parts, "-d '"+strings.ReplaceAll(b.String(), "'", `'\''`)+"'")
	}
	return strings.Join(parts, " \\\n  ")
}

// curl is example n of an operation as a line of a shell; without one, a shell's variable stands in the place of each value of the path.
// The values come from the first to the last of the path, and those of the query sorted by name.
func (o operation) curl(e *tool.Example, n int) string {
	var values map[string]json.RawMessage
	if e != nil {
		values = valuesOf(*e)
	}
	address, query := o.Path, url.Values{}
	for _, name := range o.path {
		value := "$" + strings.ToUpper(name)
		if v, given := values[name]; given {
			value = strings.ReplaceAll(url.PathEscape(inAddress(v)), "$", "%24") // it stands between a shell's quotes
		}
		address = strings.ReplaceAll(address, "{"+name+"}", value)
	}
	for _, name := range o.query {
		if v, given := values[name]; given {
			query.Set(name, inAddress(v))
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	headers := []string{`-H "Authorization: Bearer $SERVICE_JWT"`}
	if o.Reads() {
		return curl("", address, headers, nil)
	}
	headers[0] += ` -H 'Content-Type: application/json'`
	if o.isTool {
		headers = keyHeaders()
	}
	// Each example has a key of its own, so that all can be tried; a program draws one for each write.
	if o.Idempotency != tool.KeyIgnored {
		headers = append(headers, "-H '"+tool.KeyHeader+": "+o.Name+"-"+strconv.Itoa(n)+"'")
	}
	var body json.RawMessage
	switch {
	case e != nil:
		body = o.rest(values)
	case len(o.body.Properties) > 0:
		headers = append(headers, "-d @body.json") // what is in it depends: the table has it
	default:
		body = json.RawMessage("{}")
	}
	method := ""
	if o.Method != http.MethodPost {
		method = o.Method
	}
	return curl(method, address, headers, body)
}

// codes are all error codes, by status.
// The codes and their statuses are fault's; the words are said here, for people who write a client. A code without words has an empty
// line.
func codes() []code {
	said := map[fault.Code]string{
		fault.Validation:  "The input breaks its schema, or a rule; details.violations says where and why.",
		fault.AuthMissing: "No credential was sent.",
		fault.AuthInvalid: "The credential is malformed or unknown.", fault.AuthExpired: "The ServiceJWT has expired.",
		fault.AuthRevoked: "The credential was revoked, or its app is not active.",
		fault.Scope:       "The credential lacks the scope; details.scope names it.",
		fault.NotFound:    "There is no such thing.",
		fault.Conflict: "Its state does not allow it; details say more. Retryable with Retry-After alone, as while the first call with " +
			"the key still runs (REQUEST_IN_PROGRESS).",
		fault.Idempotency: "The Idempotency-Key was used before with another input.",
		fault.Suppressed:  "Targets are on the suppression list; details.targets lists them.",
		fault.RateLimit:   "Too many calls, or too much at once; wait for Retry-After.",
		fault.DBTimeout: "The source did not answer in time. A statement of execute_read_sql that ran into its own time, with " +
			"details.timeout_ms, would again, and is not retryable.",
		fault.DB: "A service or a database is not available right now.", fault.Internal: "A defect of Hub; quote the request_id.",
		fault.BadAmount:          "A price does not hold; details.rule says why.",
		fault.AccountLinkMissing: "The user has to link their account first, at link_url.",
	}
	again := map[bool]string{true: "yes", false: "no"}
	var all []code
	for c, status := range fault.Codes() {
		row := code{c, status, again[fault.New(c, "").Retryable()], said[c]}
		if c == fault.Conflict || c == fault.DBTimeout { // there are failures of both kinds
			row.Again = "as retryable says"
		}
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b code) int { return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code)) })
	return all
}

// PlainJSON is v without < > & escaped: messages and names have them, and people read them.
// The gateway writes failures and its catalog with it, so a text is read as it was stored. It is JSON to be served as JSON, not to be
// put into HTML.
func PlainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// line is v on one line.
func line(v any) string {
	b, _ := PlainJSON(v) // what is said of the API by itself can be encoded
	return string(b)
}

// indented is v on several lines, as people read it.
func indented(v any) string {
	b, err := PlainJSON(v)
	var out bytes.Buffer
	if err != nil || json.Indent(&out, b, "", "  ") != nil {
		return ""
	}
	return out.String()
}
