package catalog

import (
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// maxElsewhere is how many tools a refusal names at most that have what was asked for.
const maxElsewhere = 3

// Elsewhere is the refusal of a tool's input with a word about each member that this tool does not have and others do: whoever has
// taken one tool for another hears of the other. A member counts in the singular and in the plural: brandIds is brandId.
func (c *Catalog) Elsewhere(of *Entry, refused *fault.Error) *fault.Error {
	all := schema.ViolationsOf(refused)
	if of.Route != nil || len(all) == schema.MaxViolations { // there are more, whose number would be lost
		return refused
	}
	var told schema.Violations
	for _, v := range all {
		name, isTop := strings.CutPrefix(v.Path, "/")
		if v.Rule == "additionalProperties" && isTop && !strings.Contains(v.Message, "did you mean") {
			if takers := c.takers(of, name); len(takers) > 0 {
				v.Message += "; " + takers[0].member + " is of " + takers.names()
			}
		}
		told.Add(v.Path, v.Rule, "%s", v.Message)
	}
	if err := told.Err(); err != nil {
		return fault.From(err)
	}
	return refused
}

// taker is a tool that has a member.
type taker struct{ tool, member string }

type takers []taker

// names are those of the tools.
func (t takers) names() string {
	var all []string
	for _, one := range t {
		all = append(all, one.tool)
	}
	return strings.Join(all, ", ")
}

// takers are the tools that have the member, by the name of the first.
func (c *Catalog) takers(of *Entry, name string) (found takers) {
	for _, e := range c.Entries() {
		i := slices.IndexFunc(e.members, func(m string) bool { return strings.TrimSuffix(m, "s") == strings.TrimSuffix(name, "s") })
		if e != of && i >= 0 && len(found) < maxElsewhere && (len(found) == 0 || found[0].member == e.members[i]) {
			found = append(found, taker{e.Spec.Name, e.members[i]})
		}
	}
	return found
}
