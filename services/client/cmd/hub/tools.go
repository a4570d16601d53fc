package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"hub.internal/pkg/text"
	"hub.internal/services/client"
	"hub.internal/services/client/manual"
	"hub.internal/services/client/output"
)

// The formats of answers.
const (
	// JSON is for programs and says all; a table fits the terminal; csv is for spreadsheets.
	asJSON  = "json"
	asTable = "table"
	asCSV   = "csv"
)

// formatFlag adds -o; "" is the default.
func (h *hub) formatFlag(cmd *cobra.Command, format *string, otherwise string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "json, table or csv (default: "+otherwise+")")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{asJSON, asTable, asCSV}, cobra.ShellCompDirectiveNoFileComp))
}

// checkFormat returns the format, or the default for what out is.
// An unknown format is E_VALIDATION.
// piped is the default where out is no terminal: JSON for calls, a table with tabs for the list of tools.
func (h *hub) checkFormat(format, piped string) (string, error) {
	switch {
	case format == "" && h.screen.Width == 0:
		return piped, nil
	case format == "":
		return asTable, nil
	case format != asJSON && format != asTable && format != asCSV:
		return "", misused("-o %s: there are json, table and csv", format)
	}
	return format, nil
}

// toolsCommand is hub tools.
// It lists tools that the key may not call as well, so that a person sees which scope is missing.
func (h *hub) toolsCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "tools", Short: "List the tools, and whether this key may call them", Args: cobra.NoArgs,
		Example: "  hub tools\n  hub tools -o json | jq -r '.data.tools[].name'"}
	h.formatFlag(cmd, &format, "table; columns apart by tabs where the output is no terminal")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		format, err := h.checkFormat(format, asTable)
		if err != nil {
			return err
		}
		return h.tools(cmd.Context(), format)
	}
	return cmd
}

// tools asks for the list of tools and writes it. JSON is the gateway's whole answer, as it came.
func (h *hub) tools(ctx context.Context, format string) error {
	c, from, err := h.connect()
	if err != nil {
		return err
	}
	all, err := h.catalog(ctx, c, from)
	if err != nil {
		return err
	}
	switch format {
	case asJSON:
		return output.JSON(h.out, all.Body)
	case asCSV:
		data, err := json.Marshal(map[string]any{"tools": toolRows(all)})
		if err != nil {
			return err
		}
		answer, err := output.Read(data)
		if err != nil {
			return err
		}
		_, err = answer.CSV(h.out, output.Choice{}, false)
		return err
	}
	_, err = toolTable(all).Write(h.out, h.screen)
	return err
}

// catalog asks for the catalog, whatever was kept.
// The list is what hub tools is asked for, so one that was kept a minute ago does not do.
// The gateway answers by ETag, so that an unchanged list costs no more than a question.
func (h *hub) catalog(ctx context.Context, c *client.Client, from string) (all *client.Catalog, err error) {
	err = h.waiting(ctx, "the list of tools", func(ctx context.Context) error {
		all, err = c.Catalog(ctx, h.cache(), 0)
		return err
	})
	if err != nil {
		return nil, &exchangeError{error: err, keyFrom: from}
	}
	return all, nil
}

// toolRow is a tool in the list, as CSV and JSON have it.
// Description is the first sentence alone.
type toolRow struct {
	Name        string `json:"name"`
	Category    string `json:"category"`
	Scope       string `json:"scope"`
	Write       bool   `json:"write"`
	Allowed     bool   `json:"allowed"`
	Description string `json:"description"`
}

// toolRows are the tools in the catalog's order.
func toolRows(all *client.Catalog) []toolRow {
	rows := make([]toolRow, len(all.Tools))
	for i, t := range all.Tools {
		rows[i] = toolRow{t.Name, t.Category, t.Scope, t.Write, t.Allowed, text.FirstSentence(t.Description)}
	}
	return rows
}

// toolTable is the list for a person. On a narrow terminal the description goes first, then the category.
// It has one line for each tool, in the catalog's order.
// Optional columns are left out in the order of their numbers, the greatest first.
func toolTable(all *client.Catalog) output.Table {
	t := output.Table{Columns: []output.Column{{Name: "TOOL"}, {Name: "CATEGORY", Optional: 1}, {Name: "SCOPE"}, {Name: "WRITE"},
		{Name: "ALLOWED"}, {Name: "DESCRIPTION", Optional: 2}}}
	// Words, which can be searched for, and no signs that a terminal may lack.
	yes := map[bool]string{true: "yes", false: "no"}
	for _, r := range toolRows(all) {
		t.Rows = append(t.Rows, []string{r.Name, r.Category, r.Scope, yes[r.Write], yes[r.Allowed], r.Description})
	}
	return t
}

// showCommand is hub show.
func (h *hub) showCommand() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{Use: "show TOOL", Short: "Show what a tool does, takes and answers", Args: cobra.ExactArgs(1),
		ValidArgsFunction: h.completeTool, Example: "  hub show search_brands\n  hub show search_brands --json | jq .data.output_schema"}
	cmd.Flags().BoolVar(&raw, "json", false, "the gateway's own answer, with the schemas")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return h.show(cmd.Context(), args[0], raw) }
	return cmd
}

// show writes the page of a tool, or the gateway's own answer when raw is true. It is never of the cache: who reads it wants what
// there is now.
func (h *hub) show(ctx context.Context, name string, raw bool) error {
	c, from, err := h.connect()
	if err != nil {
		return err
	}
	var detail *client.Detail
	var body []byte
	err = h.waiting(ctx, name, func(ctx context.Context) error {
		detail, body, err = c.Detail(ctx, name)
		return err
	})
	if err != nil {
		return &exchangeError{error: err, keyFrom: from}
	}
	// The envelope as it came: what a script reads does not depend on this program's release.
	if raw {
		return output.JSON(h.out, body)
	}
	return manual.Write(h.out, h.screen, detail)
}
