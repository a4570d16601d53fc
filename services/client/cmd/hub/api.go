package main

// hub api is for what has no command: any route of the gateway, with the credential that the other commands have.

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"hub.internal/services/client"
	"hub.internal/services/client/input"
	"hub.internal/services/client/output"
)

const apiLong = `Call a route of the gateway, and print its whole answer. GET /openapi.json lists them.

The credential is the API key; below /v1/, where HUB_SERVICE_CODE is set, it is a
ServiceJWT for HUB_LINKED_USER, as hub pay makes it. The body is that of -d, an object
of the -f and -F fields, or what is piped in; fields of a GET are its query.

A POST has an Idempotency-Key. Without --idempotency-key one is made and printed on
standard error: the same key again does not write again. The exit code follows the
answer (hub help exit-codes).`

const apiExample = `  hub api GET /api/tools --jq '.data.tools[].name'
  hub api POST /api/tools/search_brands -F limit=5 -f countryCode=KR
  hub api GET /v1/pay/orders -f status=PAID
  hub api POST /v1/pay/orders -d @order.json`

// apiMethods are those that the gateway's routes have.
// Others, such as HEAD and OPTIONS, are refused before anything is sent.
func apiMethods() []string {
	return []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// apiCall is one request, as it was asked for.
// It is made anew for each command line, and its fields are the flags.
type apiCall struct {
	*hub
	// data is the body, @FILE or - for standard input; texts and values are fields, name=text and name=JSON; key is the
	// Idempotency-Key. credential, where it is set, is used in place of the API key.
	data, key, jq string
	texts, values []string
	user          string
	isDataSet     bool
	filter        *output.Filter
	credential    string
}

// apiCommand is hub api.
// Its arguments are the method, in any case, and the path with its query.
func (h *hub) apiCommand() *cobra.Command {
	o := &apiCall{hub: h}
	cmd := &cobra.Command{Use: "api METHOD PATH", Short: "Call any route of the gateway", Args: cobra.ExactArgs(2), Long: apiLong,
		Example: apiExample, ValidArgsFunction: h.completeAPI}
	f := cmd.Flags()
	f.StringVarP(&o.data, "data", "d", "", "the body: JSON, @FILE, or - for standard input")
	f.StringArrayVarP(&o.texts, "field", "f", nil, "name=text, a field of the body or of a GET's query; may be repeated")
	f.StringArrayVarP(&o.values, "json-field", "F", nil, "name=JSON, a field that is no text; may be repeated")
	f.StringVar(&o.key, "idempotency-key", "", "the Idempotency-Key of a POST (default: a new one)")
	f.StringVar(&o.jq, "jq", "", "write what this expression of jq makes of the answer")
	f.StringVar(&o.user, "user", "", "below /v1/: the app's own name for its user (default: HUB_LINKED_USER)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.isDataSet = f.Changed("data")
		return o.run(cmd.Context(), strings.ToUpper(args[0]), args[1])
	}
	return cmd
}

// completeAPI offers methods, then the paths of the catalog.
// A POST is offered the tools that the key may call; any other method the two routes that every gateway has.
func (h *hub) completeAPI(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return apiMethods(), cobra.ShellCompDirectiveNoFileComp
	case 1:
		paths := []cobra.Completion{"/api/tools", "/openapi.json"}
		if all := h.completionCatalog(cmd.Context()); all != nil && args[0] == http.MethodPost {
			paths = nil
			for _, t := range all.Tools {
				if t.Allowed && completable.MatchString(t.Name) {
					paths = append(paths, withDescription(client.ToolPath(t.Name), t.Description))
				}
			}
		}
		return paths, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// run judges the request, sends it and writes the answer.
// What it refuses itself is E_VALIDATION, and nothing has been sent: an unknown method, a path that leads out of the
// gateway, a filter that does not compile, a body that is none. It prints the whole envelope, or what --jq makes of it.
func (o *apiCall) run(ctx context.Context, method, path string) (err error) {
	switch at, parsed := url.Parse(path); {
	case !slices.Contains(apiMethods(), method):
		return misused("%s is no method: there are %s", method, strings.Join(apiMethods(), ", "))
	case parsed != nil || !strings.HasPrefix(path, "/") || at.Host != "" || at.Fragment != "" || strings.ContainsAny(path, " \\") ||
		at.JoinPath().Path != at.Path: // which the gateway would lead elsewhere
		return misused("%q is no path of the gateway, as /api/tools is one", path)
	}
	if o.filter, err = filterOf(o.jq); err != nil {
		return err
	}
	c, from, err := o.connectFor(path)
	if err != nil {
		return err
	}
	r := client.Request{Method: method, Path: path, Credential: o.credential}
	if r.Body, err = o.body(ctx, method); err != nil {
		return err
	}
	if method == http.MethodGet && r.Body != nil {
		if r.Path, err = withQuery(path, r.Body); err != nil {
			return err
		}
		r.Body = nil
	}
	if method == http.MethodPost {
		// A ULID (sortable, 26 characters) is unique without a look at anything kept.
		if r.IdempotencyKey = o.key; o.key == "" {
			r.IdempotencyKey = ulid.Make().String()
			o.note("Idempotency-Key: %s", r.IdempotencyKey)
		}
	}
	var a *client.Answer
	err = o.waiting(ctx, path, func(ctx context.Context) error {
		a, err = c.Do(ctx, r)
		return err
	})
	if err != nil && o.credential != "" {
		err = explain(err)
	}
	switch {
	case err != nil:
		return &exchangeError{error: err, keyFrom: from, idempotencyKey: r.IdempotencyKey}
	case o.filter != nil:
		return o.filter.Write(ctx, o.out, o.screen, a.Body)
	}
	return output.JSON(o.out, a.Body)
}

// connectFor returns a client with what the path wants for a credential.
// Below /v1/ it is a ServiceJWT where HUB_SERVICE_CODE is set, with no key beside it; anywhere else it is the API key.
func (o *apiCall) connectFor(path string) (c *client.Client, from string, err error) {
	if !strings.HasPrefix(path, "/v1/") || o.getenv("HUB_SERVICE_CODE") == "" {
		return o.connect()
	}
	if o.credential, err = (&payer{hub: o.hub, user: o.user}).token(maxLifetime); err != nil {
		return nil, "", err
	}
	c, err = o.gateway()
	return c, "", err
}

// body is what was given as one: -d, the fields, or standard input where a POST has neither; nil for none.
// Without -d, a GET and a DELETE never read standard input, so that a script's own input is left alone.
func (o *apiCall) body(ctx context.Context, method string) ([]byte, error) {
	hasFields := len(o.texts)+len(o.values) > 0
	switch {
	case o.isDataSet && hasFields:
		return nil, misused("-d is the whole body: leave it out, or the fields")
	case o.isDataSet && method == http.MethodGet:
		return nil, misused("a GET has no body: -f writes its query")
	case hasFields:
		return o.fields()
	case !o.isDataSet && (!o.piped || method == http.MethodGet || method == http.MethodDelete):
		return nil, nil
	}
	var text []byte
	var err error
	switch name, isFile := strings.CutPrefix(o.data, "@"); {
	case isFile:
		text, err = readFile(name)
	case o.data == "-" || !o.isDataSet:
		text, err = readUntilDone(ctx, func() ([]byte, error) { return readBounded(o.in) })
	default:
		text = []byte(o.data)
	}
	if err != nil {
		return nil, misused("-d %s: %v", o.data, err)
	}
	if len(strings.TrimSpace(string(text))) == 0 && !o.isDataSet {
		return nil, nil
	}
	return input.Object(text, "the body")
}

// fields are those of -f and -F as an object.
// -f makes a text of each value, -F takes it as JSON. A name that is given twice is E_VALIDATION, since one of the two
// values would be lost.
func (o *apiCall) fields() ([]byte, error) {
	all := map[string]any{}
	for i, field := range append(slices.Clone(o.texts), o.values...) {
		name, value, named := strings.Cut(field, "=")
		isText := i < len(o.texts)
		_, twice := all[name]
		switch {
		case !named || name == "":
			return nil, misused("%q is no field: write name=value", field)
		case twice:
			return nil, misused("%s is given twice", name)
		case !isText && !json.Valid([]byte(value)):
			return nil, misused("-F %s: its value is no JSON; -f takes a text", field)
		case isText:
			all[name] = value
		default:
			all[name] = json.RawMessage(value)
		}
	}
	return json.Marshal(all)
}

// withQuery is a path with the members of an object in its query.
// Texts lose their quotes; numbers, lists and objects stay as they are in JSON. A parameter that the path has already is
// replaced.
func withQuery(path string, object []byte) (string, error) {
	at, err := url.Parse(path)
	if err != nil {
		return "", err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return "", err
	}
	query := at.Query()
	for name, raw := range members {
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // what is no text is as it was written
		query.Set(name, text)
	}
	at.RawQuery = query.Encode()
	return at.String(), nil
}
