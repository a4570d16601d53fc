package admin

import (
	"embed"
	"encoding/json"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

const (
	listMenuGroups  = "list_menu_groups"
	createMenuGroup = "create_menu_group"
	createMenuItem  = "create_menu_item"
	upsertPage      = "upsert_dynamic_page"

	scopeQuery = "query"
	scopeWrite = "admin:write"
)

// Manifest is what admin owns, with its part of the console and what the gateway asks of that.
func Manifest(operations []rpc.Operation, console ...tool.Route) tool.Manifest {
	s := New(Config{})
	return rpc.Manifest("admin", Tools(s), append(Operations(s), operations...), console...)
}

// Tools declares what agents can ask of admin.
func Tools(s *Service) []tool.Tool {
	return []tool.Tool{listMenuGroupsTool(s), createMenuGroupTool(s), createMenuItemTool(s), upsertPageTool(s)}
}

// listMenuGroupsIn is the request of list_menu_groups.
type listMenuGroupsIn struct {
	IncludeFixed bool `json:"includeFixed"`
}

// listMenuGroupsTool declares list_menu_groups.
func listMenuGroupsTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: listMenuGroups, Position: 12, Category: tool.Query, Scope: scopeQuery,
		Description: "The groups of the console's menu with their items, in the order of tabs and sidebar: the groupSlug of " +
			"create_menu_item, groupSlug and itemSlug of upsert_dynamic_page.",
		Input: schema.Object(
			schema.Optional("includeFixed", schema.Boolean("Also the built-in groups (System, Admin), which take no items.")),
		),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
			{Code: fault.DB, Reason: "The write store cannot be reached right now. Try again in a moment."},
		},
		Limits:   map[string]int64{"max_groups": MaxGroups, "max_items": MaxItems},
		Examples: examples(listMenuGroups),
	}, s.ListMenuGroups)
}

// createMenuGroupIn is the request of create_menu_group.
type createMenuGroupIn struct {
	Name     string  `json:"name"`
	Slug     string  `json:"slug"`
	Icon     *string `json:"icon"`
	Position *int64  `json:"position"`
}

const slugHelp = "Its part of addresses. It never changes."

const iconHelp = "Emoji or letters before the name, at most 10 (a flag is one)."

// createMenuGroupTool declares create_menu_group.
func createMenuGroupTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: createMenuGroup, Position: 16, Category: tool.Admin, Scope: scopeWrite, Write: true,
		Description: "Create a group of the console's menu: a tab in the header, behind System and Admin. It shows once it has an " +
			"item: create_menu_item is next.",
		Input: schema.Object(
			schema.Required("name", schema.String("One line.", schema.Length(1, maxGroupName))),
			schema.Required("slug", schema.String(slugHelp,
				schema.Length(1, maxGroupSlug), schema.Pattern(slugPattern))),
			schema.Optional("icon", schema.String(iconHelp)),
			schema.Optional("position", schema.Integer("Smallest first; absent is last.", schema.Min(0))),
		),
		Output: schema.Of[GroupCreated](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema, or the name or icon has control characters; details.violations " +
				"lists every violation."},
			{Code: fault.Conflict, Reason: "The slug is taken, the slug or the name is a built-in group's, or there are 20 groups."},
			{Code: fault.DB, Reason: storeAway},
		},
		Limits:   map[string]int64{"max_groups": MaxGroups},
		Examples: examples(createMenuGroup),
	}, s.CreateMenuGroup)
}

// createMenuItemIn is the request of create_menu_item.
type createMenuItemIn struct {
	GroupSlug string  `json:"groupSlug"`
	Name      string  `json:"name"`
	Slug      string  `json:"slug"`
	Icon      *string `json:"icon"`
	Href      *string `json:"href"`
	Position  *int64  `json:"position"`
}

// createMenuItemTool declares create_menu_item.
func createMenuItemTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: createMenuItem, Position: 17, Category: tool.Admin, Scope: scopeWrite, Write: true,
		Description: "Create an item in a group of the console's menu: a line of its sidebar. Without href it leads to a page of its " +
			"own, /p/{groupSlug}/{slug}, which upsert_dynamic_page writes next.",
		Input: schema.Object(
			schema.Required("groupSlug", schema.String("Group of create_menu_group or list_menu_groups.")),
			schema.Required("name", schema.String("One line.", schema.Length(1, maxItemName))),
			schema.Required("slug", schema.String(slugHelp,
				schema.Length(1, maxItemSlug), schema.Pattern(slugPattern))),
			schema.Optional("icon", schema.String(iconHelp)),
			schema.Optional("href", schema.String("Leads there, without a page: a path such as /drafts, or an https:// address.")),
			schema.Optional("position", schema.Integer("Smallest first; absent is last.", schema.Min(0))),
		),
		Output: schema.Of[ItemCreated](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation, Reason: "The input breaks its schema, or the name, icon or href cannot be; details.violations " +
				"lists every violation."},
			{Code: fault.NotFound, Reason: "There is no group of that slug."},
			{Code: fault.Conflict, Reason: "The slug is taken in that group, the group is built in, or it has 50 items."},
			{Code: fault.DB, Reason: storeAway},
		},
		Limits:   map[string]int64{"max_items": MaxItems},
		Examples: examples(createMenuItem),
	}, s.CreateMenuItem)
}

// upsertPageIn is the request of upsert_dynamic_page.
type upsertPageIn struct {
	GroupSlug   string      `json:"groupSlug"`
	ItemSlug    string      `json:"itemSlug"`
	Title       string      `json:"title"`
	Description *string     `json:"description"`
	Sections    []sectionIn `json:"sections"`
	CreatedBy   *string     `json:"createdBy"`
}

// sectionIn is a section as agents send it: which members it has depends on its type.
type sectionIn struct {
	Type    string            `json:"type"`
	Title   *string           `json:"title"`
	Body    *string           `json:"body"`
	Cards   []json.RawMessage `json:"cards"`
	Columns []columnIn        `json:"columns"`
	Rows    []json.RawMessage `json:"rows"`
	Labels  []string          `json:"labels"`
	Series  []json.RawMessage `json:"series"`
	Items   []json.RawMessage `json:"items"`
	Unit    *string           `json:"unit"`
	Caption *string           `json:"caption"`
}

// columnIn is a column of a table as agents send it.
type columnIn struct {
	Key    string  `json:"key"`
	Label  string  `json:"label"`
	Align  *string `json:"align"`
	Format *string `json:"format"`
}

// upsertPageTool declares upsert_dynamic_page.
func upsertPageTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: upsertPage, Position: 18, Category: tool.Admin, Scope: scopeWrite, Write: true, Replaces: true, MaxBody: maxPage,
		Description: "Create or replace the page of a menu item: the last of create_menu_group, create_menu_item, upsert_dynamic_page. " +
			"Of a section, text is HTML (headings, lists, tables, links to https and to paths of this console, data: pictures up to " +
			"200 kB; styles, scripts, forms and other pictures are taken out and answered as removed); stats are cards of a label and a " +
			"value; a table shows of each row the members that its columns name, so rows may be what a search tool answered; bar and line " +
			`draw series over labels: {"type": "bar", "labels": ["May", "June"], "series": [{"name": "Sales", "values": [12, null]}], ` +
			`"unit": "₩"}; progress draws items. Numbers are aligned and grouped, dates and web addresses recognised; a column's format ` +
			`says more: {"key": "rate", "label": "Rate", "format": "percent"}. warnings tell what readers will likely not see as it is ` +
			"meant, such as a column that is empty in all rows. The page before stays as a version, which an administrator can restore.",
		Input: schema.Object(
			schema.Required("groupSlug", schema.String("Group of the item, as list_menu_groups has both.")),
			schema.Required("itemSlug", schema.String("Item of create_menu_item without href.")),
			schema.Required("title", schema.String("One line.", schema.Length(1, maxTitle))),
			schema.Optional("description", schema.String("A sentence below the heading.", schema.Length(0, maxDescription))),
			schema.Required("sections", schema.Array("From top to bottom.", schema.Object(
				schema.Required("type", schema.String("text has body; stats cards; table columns and rows; bar and line labels and series; "+
					"progress items.", schema.Enum(Text, Stats, Table, Bar, Line, Progress))),
				schema.Optional("title", schema.String("", schema.Length(0, maxTitle))),
				schema.Optional("body", schema.String("HTML.")),
				schema.Optional("cards", schema.Array("", schema.FreeObject(
					"{label, value, unit?, delta?, hint?}: value and delta are strings or numbers, the others strings."),
					schema.Items(0, maxCards))),
				schema.Optional("columns", schema.Array("What of each row is shown.", schema.Object(
					schema.Required("key", schema.String("Member of each row, or of a member: contact.email.", schema.Length(1, maxKey))),
					schema.Required("label", schema.String("", schema.Length(1, maxLabel))),
					schema.Optional("align", schema.String("Absent is right for numbers, else left.", schema.Enum("left", "right", "center"))),
					schema.Optional("format", schema.String("percent: 0.325 is 32.5 %. money: ₩. bar: by the column's largest. sparkline: a list of "+
						"numbers. date: the reader's.", schema.Enum(Percent, Money, InBar, Sparkline, Date))),
				), schema.Items(0, maxColumns))),
				schema.Optional("rows", schema.Array("Members that no column names are kept and not shown.",
					schema.FreeObject(""), schema.Items(0, maxRows))),
				schema.Optional("labels", schema.Array("What each value is of.", schema.String("", schema.Length(0, maxLabel)),
					schema.Items(0, maxPoints))),
				schema.Optional("series", schema.Array("", schema.FreeObject(
					"{name, values}: a number or null for each label."), schema.Items(0, maxSeries))),
				schema.Optional("items", schema.Array("", schema.FreeObject(
					"{label, value, max?}: without max, value is a percentage."), schema.Items(0, maxGoals))),
				schema.Optional("unit", schema.String("Beside the numbers of bar, line and progress.", schema.Length(0, maxUnit))),
				schema.Optional("caption", schema.String("A line below, not of text and stats.", schema.Length(0, maxCaption))),
			), schema.Items(0, maxSections))),
			schema.Optional("createdBy", schema.String("Who makes it, as a label; the audit log keeps the credential.",
				schema.Length(0, maxCreatedBy))),
		),
		Output: schema.Of[PageStored](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation,
				Reason: "The input breaks its schema, a section lacks what its type needs or has what belongs to another, a text has " +
					"control characters, or the body is larger than 1 MiB; details.violations lists every violation, up to 50."},
			{Code: fault.NotFound, Reason: "There is no group or item of that slug: create_menu_item comes first."},
			{Code: fault.Conflict, Reason: "The item leads elsewhere by an href of its own, or the group is built in."},
			{Code: fault.DB, Reason: storeAway},
		},
		Limits: map[string]int64{"max_sections": maxSections, "max_rows": maxRows, "max_columns": maxColumns, "max_cards": maxCards,
			"max_cells": maxCells, "max_points": maxPoints, "max_series": maxSeries, "max_items": maxGoals, "max_body_bytes": maxPage},
		Examples: examples(upsertPage),
	}, s.UpsertDynamicPage)
}

// maxPage bounds a page as it is sent.
const maxPage = 1 << 20

const storeAway = "The write store cannot be reached right now. Try again in a moment, with the same Idempotency-Key."

//go:embed examples/*.json
var exampleFiles embed.FS

// examples are a tool's requests with their answers, as TestExamples gets them;
// `go test -run TestExamples -update` writes the answers.
func examples(name string) []tool.Example { return tool.Examples(exampleFiles, name) }
