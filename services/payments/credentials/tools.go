package credentials

import (
	"context"
	"embed"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// Tools declares what agents can ask about credentials. They see masks, and change none.
func Tools(s *Service) []tool.Tool { return []tool.Tool{listTool(s)} }

// Listed is a credential as tools answer it.
type Listed struct {
	Provider  string `json:"provider" jsonschema:"The payment provider"`
	Env       string `json:"env" jsonschema:"sandbox or production"`
	ClientID  string `json:"client_id" jsonschema:"The client id, masked: its first and last four characters, or the last two of a short one"`
	Active    bool   `json:"active" jsonschema:"Whether new orders use it; at most one for each provider and env"`
	CreatedAt string `json:"created_at" jsonschema:"RFC 3339"`
	UpdatedAt string `json:"updated_at" jsonschema:"RFC 3339; when it became active, or inactive"`
}

// List is the answer of list_pg_credentials.
type List struct {
	Credentials []Listed `json:"credentials"`
}

// Count is how many there are.
func (l List) Count() int { return len(l.Credentials) }

// listIn is the input of list_pg_credentials.
type listIn struct {
	Env        string `json:"env"`
	ActiveOnly bool   `json:"active_only"`
}

// listTool declares list_pg_credentials.
func listTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "list_pg_credentials", Position: 20, Category: tool.Admin, Scope: "admin:read",
		Description: "What payment providers know Hub by, newest first: provider, environment, the client id masked, and whether new orders " +
			"use it. Secrets are never answered. People add and rotate credentials in the console.",
		Input: schema.Object(
			schema.Optional("env", schema.String("", schema.Enum(Envs()...))),
			schema.Optional("active_only", schema.Boolean("Only those that new orders use.", schema.Default(false))),
		),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
			{Code: fault.DB, Reason: "The write store cannot be reached right now. Try again in a moment."},
		},
		Limits:   map[string]int64{"max_credentials": maxListed},
		Examples: tool.Examples(exampleFiles, "list_pg_credentials"),
	}, func(ctx context.Context, in listIn) (List, error) {
		list, err := s.List(ctx, Filter{Env: Env(in.Env), ActiveOnly: in.ActiveOnly})
		out := List{Credentials: []Listed{}}
		for _, c := range list {
			out.Credentials = append(out.Credentials, Listed{Provider: c.Provider, Env: string(c.Env), ClientID: c.ClientIDMask, Active: c.Active,
				CreatedAt: schema.Moment(c.CreatedAt), UpdatedAt: schema.Moment(c.UpdatedAt)})
		}
		return out, err
	})
}

//go:embed examples/*.json
var exampleFiles embed.FS
