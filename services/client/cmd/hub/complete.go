package main

// Completion runs at each TAB: the shell starts this program with what has been typed so far, and waits. So it asks
// the gateway seldom (Cache), gives up soon, and prints nothing but offers.

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/pkg/text"
	"hub.internal/services/client"
	"hub.internal/services/client/output"
)

const (
	// completionTimeout is how long whoever has pressed TAB waits at most; what was kept is offered then.
	completionTimeout = 800 * time.Millisecond
	// completionAge is how old a catalog may be that is offered without asking.
	completionAge = time.Hour
)

// completable names alone are offered: a shell reads them.
var completable = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)

// completionCatalog is the catalog for a completion, or nil: errors have no place on a line that somebody is typing.
// It is the kept one where the gateway does not answer in time.
func (h *hub) completionCatalog(ctx context.Context) *client.Catalog {
	if ctx == nil {
		ctx = context.Background()
	}
	c, _, err := h.connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	all, _ := c.Catalog(ctx, h.cache(), completionAge)
	return all
}

// completeTool offers the tools that the key may call.
// Tools that the key may not call are left out: offering them would only lead to E_SCOPE.
func (h *hub) completeTool(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offers []cobra.Completion
	if all := h.completionCatalog(cmd.Context()); all != nil && len(args) == 0 {
		for _, t := range all.Tools {
			if t.Allowed && completable.MatchString(t.Name) {
				offers = append(offers, withDescription(t.Name, t.Description))
			}
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeCall offers tools, then their fields, then the values of a field.
// Field names end in = without a space behind it, so that the value can be typed at once.
func (h *hub) completeCall(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return h.completeTool(cmd, args, word)
	}
	all := h.completionCatalog(cmd.Context())
	if all == nil || all.Tool(args[0]) == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	fields := all.Tool(args[0]).Input
	name, value, named := strings.Cut(word, "=")
	if !named {
		return completeField(fields, args[1:]), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp |
			cobra.ShellCompDirectiveKeepOrder
	}
	if strings.HasPrefix(value, "@") {
		// A file is meant: the shell completes names of files itself.
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeValue(fields.Properties.Field(name), name), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeField offers the fields that are not there yet, those that have to be first.
// Within the required ones, and within the others, the order is the schema's.
func completeField(s *client.Schema, given []string) (offers []cobra.Completion) {
	var optional []cobra.Completion
	for _, of := range s.Properties {
		there := slices.ContainsFunc(given, func(arg string) bool { return strings.HasPrefix(arg, of.Name+"=") })
		switch {
		// A field that is given is not offered again, unless it is a list, which may be given in parts.
		case !completable.MatchString(of.Name), there && !of.Schema.Type.Is("array"):
		case s.Requires(of.Name):
			offers = append(offers, withDescription(of.Name+"=", of.Schema.Description))
		default:
			optional = append(optional, withDescription(of.Name+"=", of.Schema.Description))
		}
	}
	return append(offers, optional...)
}

// completeValue offers the values that a field can have: true and false, and those of an enum, also of the items of a list.
func completeValue(of *client.Schema, name string) (offers []cobra.Completion) {
	if of == nil {
		return nil
	}
	if of.Type.Is("boolean") {
		return []cobra.Completion{name + "=true", name + "=false"}
	}
	values := of.Enum
	if of.Items != nil {
		values = append(slices.Clone(values), of.Items.Enum...)
	}
	for _, raw := range values {
		// Values of an enum that are no texts, such as numbers, are offered as they are written in JSON.
		if text := strings.Trim(string(raw), `"`); completable.MatchString(text) {
			offers = append(offers, name+"="+text)
		}
	}
	return offers
}

// withDescription is an offer with what shells show beside it: the first sentence, 80 columns at most.
func withDescription(offer, description string) cobra.Completion {
	return cobra.CompletionWithDesc(offer, output.Truncate(output.Sanitize(text.FirstSentence(description)), 80))
}
