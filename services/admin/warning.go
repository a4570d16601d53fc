package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Warning is about something that was stored as it came, and that readers will likely not see as it was meant.
type Warning struct {
	Path    string `json:"path" jsonschema:"Where in the input, as a JSON Pointer"`
	Message string `json:"message" jsonschema:"What readers see, and what to write instead"`
}

const (
	// maxWarnings bounds those of an answer, maxNamed the members that one names.
	maxWarnings = 50
	maxNamed    = 20
)

// warnings tells what of a page is likely not what its writer means: nothing of it can do harm.
func warnings(p Page, hidden bool) []Warning {
	list := []Warning{}
	warn := func(path, format string, args ...any) {
		list = append(list, Warning{path, fmt.Sprintf(format, args...)})
	}
	if hidden {
		warn("/itemSlug", "the item or its group is hidden: nobody finds the page in the menus, only by its url; "+
			"an administrator can show it at /admin/menus")
	}
	if len(p.Sections) == 0 {
		warn("/sections", "is empty: readers see the heading alone")
	}
	for n, s := range p.Sections {
		at := fmt.Sprintf("/sections/%d", n)
		switch s.Type {
		case Text:
			if body := strings.TrimSpace(*s.Body); body == "" {
				warn(at+"/body", "has no text to show")
			} else if strings.Contains(body, "\n") && !strings.Contains(body, "<") {
				warn(at+"/body", "is HTML without an element, so its lines run together and Markdown stays as it is; write <p>, <ul>, <br>")
			}
		case Stats:
			if len(s.Cards) == 0 {
				warn(at+"/cards", "is empty: readers see no figures")
			}
		case Table:
			if len(s.Rows) == 0 {
				warn(at+"/rows", "is empty: readers see no table")
			}
			emptyColumns(at+"/columns", s, warn)
		}
	}
	return list[:min(len(list), maxWarnings)]
}

// emptyColumns warns of those that no row has anything for.
func emptyColumns(at string, s Section, warn func(path, format string, args ...any)) {
	if len(s.Rows) == 0 {
		return
	}
	filled, members := make([]bool, len(s.Columns)), map[string]bool{}
	for _, raw := range s.Rows {
		var row Row
		if json.Unmarshal(raw, &row) != nil {
			continue // the schema has refused what is no object
		}
		for name := range row.members {
			members[name] = true
		}
		for n, c := range s.Columns {
			if !filled[n] {
				v := string(row.Member(c.Key))
				filled[n] = v != "" && v != "null" && v != `""`
			}
		}
	}
	named := make([]string, 0, len(members))
	for name := range members {
		named = append(named, shown(name))
	}
	slices.Sort(named)
	if len(named) > maxNamed {
		named = append(named[:maxNamed], "…")
	}
	for n, c := range s.Columns {
		if !filled[n] {
			warn(fmt.Sprintf("%s/%d/key", at, n), "%q is empty in each of the %d rows; rows have %s", shown(c.Key), len(s.Rows),
				strings.Join(named, ", "))
		}
	}
}

// deepest is how many members a key reaches through. Each level of a row is read for it.
const deepest = 8

// Row is the members of a table's row. Those that keys reach into are read once, however many keys do.
type Row struct {
	members map[string]json.RawMessage
	inner   map[string]*Row
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Row) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &r.members) }

// Member is what a column's key names: a member, or by its dots one of a member. Nil is none.
func (r *Row) Member(key string) json.RawMessage {
	for range deepest {
		if v, there := r.members[key]; there {
			return v
		}
		var into *Row
		for n := 0; n < len(key) && into == nil; n++ {
			if key[n] == '.' {
				if into = r.into(key[:n]); into != nil {
					r, key = into, key[n+1:]
				}
			}
		}
		if into == nil {
			return nil
		}
	}
	return r.members[key]
}

// into is the record that a member is; nil for any other.
func (r *Row) into(name string) *Row {
	if known, there := r.inner[name]; there {
		return known
	}
	v, there := r.members[name]
	if !there {
		return nil
	}
	var inner *Row
	if json.Unmarshal(v, &inner) != nil {
		inner = nil
	}
	if r.inner == nil {
		r.inner = map[string]*Row{}
	}
	r.inner[name] = inner
	return inner
}
