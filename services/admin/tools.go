package admin

import (
	"embed"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

const (
	listMenuGroups  = "list_menu_groups"
	createMenuGroup = "create_menu_group"
	createMenuItem  = "create_menu_item"

	scopeQuery = "query"
	scopeWrite = "admin:write"
)

// Manifest is what admin owns, with its part of the console.
func Manifest(console ...tool.Route) tool.Manifest {
	s := New(Config{})
	return hop.Manifest("admin", Tools(s), Operations(s), console...)
}

// Tools declares what agents can ask of admin.
func Tools(s *Service) []tool.Tool {
	return []tool.Tool{listMenuGroupsTool(s), createMenuGroupTool(s), createMenuItemTool(s)}
}

type listMenuGroupsIn struct {
	IncludeFixed bool `json:"includeFixed"`
}

func listMenuGroupsTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: listMenuGroups, Position: 12, Category: tool.Query, Scope: scopeQuery,
		Description: "The groups of the console's menu with their items, in the order of tabs and sidebar. The groupSlug and itemSlug found here " +
			"are those of create_menu_item and upsert_dynamic_page.",
		Input: schema.Object(
			schema.Optional("includeFixed", schema.Boolean("Whether the built-in groups (System, Admin), which take no items from tools, come first.")),
		),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
			{Code: fault.DB, Reason: "The write store cannot be reached right now. Try again in a moment."},
		},
		Limits:   map[string]int64{"max_groups": MaxGroups, "max_items": MaxItems},
		Examples: examples(listMenuGroups),
	}, s.ListMenuGroups)
}

type createMenuGroupIn struct {
	Name     string  `json:"name"`
	Slug     string  `json:"slug"`
	Icon     *string `json:"icon"`
	Position *int64  `json:"position"`
}

const iconHelp = "An emoji or a few letters in front of the name: at most 10 characters as people count them, so that a flag is one. Empty is none."

func createMenuGroupTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: createMenuGroup, Position: 16, Category: tool.Admin, Scope: scopeWrite, Write: true,
		Description: "Create a group of the console's menu: a tab in the header, behind System and Admin. It shows once it has an item: " +
			"create_menu_item is next.",
		Input: schema.Object(
			schema.Required("name", schema.String("Name of the tab: one line.", schema.Length(1, maxGroupName))),
			schema.Required("slug", schema.String("Its part of addresses: lower-case letters, digits and single hyphens between them. It never changes.",
				schema.Length(1, maxGroupSlug), schema.Pattern(slugPattern))),
			schema.Optional("icon", schema.String(iconHelp)),
			schema.Optional("position", schema.Integer("Place among the groups, the smallest first; absent is the end.", schema.Min(0))),
		),
		Output: schema.Of[GroupCreated](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema, or the name or icon has control characters; details.violations lists every violation."},
			{Code: fault.Conflict, Reason: "The slug is taken, also by a built-in group, or there are 20 groups."},
			{Code: fault.DB, Reason: storeAway},
		},
		Limits:   map[string]int64{"max_groups": MaxGroups},
		Examples: examples(createMenuGroup),
	}, s.CreateMenuGroup)
}

type createMenuItemIn struct {
	GroupSlug string  `json:"groupSlug"`
	Name      string  `json:"name"`
	Slug      string  `json:"slug"`
	Icon      *string `json:"icon"`
	Href      *string `json:"href"`
	Position  *int64  `json:"position"`
}

func createMenuItemTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: createMenuItem, Position: 17, Category: tool.Admin, Scope: scopeWrite, Write: true,
		Description: "Create an item in a group of the console's menu: a line of its sidebar. Without href it leads to a page of its own, " +
			"/p/{groupSlug}/{slug}, which upsert_dynamic_page writes next; with href it leads there and has no page.",
		Input: schema.Object(
			schema.Required("groupSlug", schema.String("Group of create_menu_group; list_menu_groups lists them.")),
			schema.Required("name", schema.String("Name in the sidebar: one line.", schema.Length(1, maxItemName))),
			schema.Required("slug", schema.String("Its part of addresses: lower-case letters, digits and single hyphens between them. It never changes.",
				schema.Length(1, maxItemSlug), schema.Pattern(slugPattern))),
			schema.Optional("icon", schema.String(iconHelp)),
			schema.Optional("href", schema.String("Where it leads instead of a page of its own: a path of this console such as /drafts, or an https:// "+
				"address elsewhere. Empty is a page of its own.")),
			schema.Optional("position", schema.Integer("Place in the group, the smallest first; absent is the end.", schema.Min(0))),
		),
		Output: schema.Of[ItemCreated](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema, or the name, icon or href cannot be; details.violations lists every violation."},
			{Code: fault.NotFound, Reason: "There is no group of that slug."},
			{Code: fault.Conflict, Reason: "The slug is taken in that group, the group is built in, or it has 50 items."},
			{Code: fault.DB, Reason: storeAway},
		},
		Limits:   map[string]int64{"max_items": MaxItems},
		Examples: examples(createMenuItem),
	}, s.CreateMenuItem)
}

const storeAway = "The write store cannot be reached right now. Try again in a moment, with the same Idempotency-Key."

//go:embed examples/*.json
var exampleFiles embed.FS

// examples are a tool's requests with their answers, as TestExamples gets them;
// `go test -run TestExamples -update` writes the answers.
func examples(name string) []tool.Example { return tool.Examples(exampleFiles, name) }
