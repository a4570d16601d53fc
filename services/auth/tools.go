package auth

import (
	"context"
	"embed"
	"net/http"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/links"
)

const (
	scopeAdminRead = "admin:read"
	defaultApps    = 100
	maxApps        = 500
)

// Tools declares what agents can ask of auth. They see apps, and change none.
func Tools(s *apps.Service) []tool.Tool {
	return []tool.Tool{listAppsTool(s), inspectAppTool(s)}
}

// App is an app as tools answer it.
type App struct {
	ServiceCode  string   `json:"service_code" jsonschema:"The code that names the app"`
	Name         string   `json:"name" jsonschema:"Its name, for people"`
	Status       string   `json:"status" jsonschema:"ACTIVE, SUSPENDED or REVOKED; only an ACTIVE app may call"`
	RedirectURLs []string `json:"redirect_urls" jsonschema:"Where browsers may be sent back to; compared byte by byte"`
	Origins      []string `json:"origins" jsonschema:"Whom messages may be sent to; empty allows every one"`
	Scopes       []string `json:"scopes" jsonschema:"What it may do"`
	HasSecret    bool     `json:"has_secret" jsonschema:"Whether a shared secret was issued and is good; it is never answered"`
	CreatedAt    string   `json:"created_at" jsonschema:"RFC 3339"`
}

// InspectedApp is an app with the count of its links.
type InspectedApp struct {
	App
	IdentityLinks int `json:"identity_links" jsonschema:"How many users have linked their account to the app, and still do"`
}

// appOf is an app as tools answer it.
func appOf(a apps.App, hasSecret bool) App {
	return App{ServiceCode: a.Code, Name: a.Name, Status: string(a.Status), RedirectURLs: a.RedirectURLs, Origins: a.Origins,
		Scopes: a.Scopes, HasSecret: hasSecret, CreatedAt: schema.Moment(a.CreatedAt)}
}

// listAppsIn is the request of list_connected_apps.
type listAppsIn struct {
	Status string `json:"status"`
	Limit  int64  `json:"limit"`
}

// AppList is the answer of list_connected_apps.
type AppList struct {
	Apps []App `json:"apps"`
}

// Count is how many there are.
func (l AppList) Count() int { return len(l.Apps) }

// listAppsTool declares list_connected_apps.
func listAppsTool(s *apps.Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "list_connected_apps", Position: 19, Category: tool.Admin, Scope: scopeAdminRead,
		Description: "The Connected Apps (other services that call Hub's API for their users), by service_code: state, allowed " +
			"redirect URLs and origins, scopes, and whether a shared secret was issued. People change them in the console; " +
			"inspect_connected_app tells more of one.",
		Input: schema.Object(
			schema.Optional("status", schema.String("", schema.Enum(apps.Statuses()...))),
			schema.Optional("limit", schema.Integer("", schema.Range(1, maxApps), schema.Default(defaultApps))),
		),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
			{Code: fault.DB, Reason: storeAway},
		},
		Limits:   map[string]int64{"default_limit": defaultApps, "max_limit": maxApps},
		Examples: examples("list_connected_apps"),
	}, func(ctx context.Context, in listAppsIn) (AppList, error) {
		page, _, err := s.List(ctx, apps.Filter{Status: apps.Status(in.Status), Limit: int(in.Limit)})
		out := AppList{Apps: []App{}}
		for _, a := range page {
			out.Apps = append(out.Apps, appOf(a.App, a.HasSecret))
		}
		return out, err
	})
}

// inspectAppIn is the request of inspect_connected_app.
type inspectAppIn struct {
	ServiceCode string `json:"service_code"`
}

// AppInspected is the answer of inspect_connected_app.
type AppInspected struct {
	App InspectedApp `json:"app"`
}

// inspectAppTool declares inspect_connected_app.
func inspectAppTool(s *apps.Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "inspect_connected_app", Position: 21, Category: tool.Admin, Scope: scopeAdminRead,
		Description: "One Connected App, as list_connected_apps has it, and how many users have linked their account to it. Secrets " +
			"are never answered.",
		Input: schema.Object(
			schema.Required("service_code", schema.String("The code that names the app.", schema.Length(1, apps.MaxCode))),
		),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
			{Code: fault.NotFound, Reason: "There is no app with that service_code."},
			{Code: fault.DB, Reason: storeAway},
		},
		Examples: examples("inspect_connected_app"),
	}, func(ctx context.Context, in inspectAppIn) (AppInspected, error) {
		a, err := s.Inspect(ctx, in.ServiceCode)
		if err != nil {
			return AppInspected{}, err
		}
		return AppInspected{InspectedApp{appOf(a.App, a.HasSecret(s.Now())), a.Links}}, nil
	})
}

// Routes declares auth's part of the API for Connected Apps.
func Routes(s *links.Service) []tool.APIRoute {
	return []tool.APIRoute{confirmRoute(s)}
}

// Link is a link as routes answer it.
type Link struct {
	ID             string   `json:"id" jsonschema:"The id of the link"`
	ServiceCode    string   `json:"service_code" jsonschema:"The code of the app"`
	ExternalUserID string   `json:"external_user_id" jsonschema:"The app's own name for the user"`
	Status         string   `json:"status" jsonschema:"ACTIVE: calls for the user resolve from now on"`
	Scopes         []string `json:"scopes" jsonschema:"What the user has agreed to"`
	LinkedAt       string   `json:"linked_at" jsonschema:"RFC 3339"`
}

// Confirmed is the answer of connect.confirm.
type Confirmed struct {
	Link Link `json:"link"`
}

// confirmIn is the request of POST /v1/connect/confirm.
type confirmIn struct {
	Code string `json:"code"`
}

// confirmRoute declares POST /v1/connect/confirm.
func confirmRoute(s *links.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{
		Method: http.MethodPost, Path: "/v1/connect/confirm", Success: []int{http.StatusOK}, Idempotency: tool.KeyIgnored,
		Credential: tool.AppUnlinkedCredential,
		Declaration: tool.Declaration{
			Name: "connect.confirm", Examples: examples("connect.confirm"), Category: tool.Admin, MaxBody: 4 << 10,
			Description: "Confirms the link of an account, for an app whose link mode is confirm. The app has got the code at its redirect URL, " +
				"in the browser session of its user, and calls within a minute with a token whose sub is that same user. A code is good once; " +
				"one that comes for another user drops the link.",
			Input: schema.Object(
				schema.Required("code", schema.String("The code that the browser has brought back.", schema.Length(1, 100))),
			),
			Errors: []tool.ErrorDoc{
				{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
				{Code: fault.NotFound, Reason: links.NoCode},
				{Code: fault.Conflict, DetailCodes: []string{links.CodeMismatch},
					Reason: "The code belongs to another user of the app (details.code " + links.CodeMismatch + "): the link was dropped."},
				{Code: fault.DB, Reason: storeAway},
			},
		},
	}, func(ctx context.Context, in confirmIn) (Confirmed, error) {
		l, err := s.Confirm(ctx, in.Code)
		if err != nil {
			return Confirmed{}, err
		}
		return Confirmed{Link{ID: l.ID, ServiceCode: l.Service, ExternalUserID: l.ExternalUser, Status: string(l.Status), Scopes: l.Scopes,
			LinkedAt: schema.Moment(l.LinkedAt)}}, nil
	})
}

const storeAway = "The write store cannot be reached right now. Try again in a moment."

//go:embed examples/*.json
var exampleFiles embed.FS

// examples are a tool's requests with their answers, as TestExamples gets them;
// `go test -run TestExamples -update` writes the answers.
func examples(name string) []tool.Example { return tool.Examples(exampleFiles, name) }
