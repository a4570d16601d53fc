package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
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
			} else if n := len(silent.FindAllString(body, -1)); n > 0 {
				warn(at+"/body", `has pictures that say nothing to whoever does not see them (%d): write <img src="…" alt="what it shows">`, n)
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
			rows := rowsOf(s)
			emptyColumns(at+"/columns", s, rows, warn)
			misfits(at+"/rows", s, rows, warn)
		case Bar, Line:
			if !drawable(s.Series) {
				warn(at+"/series", "has no number: readers see no chart")
			}
		case Progress:
			if len(s.Items) == 0 {
				warn(at+"/items", "is empty: readers see no progress")
			}
		}
	}
	return list[:min(len(list), maxWarnings)]
}

// silent is a picture without a text, in what CleanText lets stay.
var silent = regexp.MustCompile(`<img src="[^"]*" alt=""`)

// drawable tells that there is a number to draw.
func drawable(series []Series) bool {
	return slices.ContainsFunc(series, func(s Series) bool {
		return slices.ContainsFunc(s.Values, func(v json.RawMessage) bool { return !empty(v) })
	})
}

// rowsOf are the rows of a table.
func rowsOf(s Section) []Row {
	rows := make([]Row, len(s.Rows))
	for n, raw := range s.Rows {
		_ = json.Unmarshal(raw, &rows[n]) // the schema has refused what is no object
	}
	return rows
}

// wanted is what a cell of each format has to be.
var wanted = map[string]string{
	Percent: "a share such as 0.325 for 32.5 %", Money: "a number such as 129000", InBar: "a number such as 42",
	Sparkline: "a list of numbers such as [3, 5, null, 4]", Date: "a text such as 2026-01-31 or 2026-01-31T09:00:00Z",
}

// misfits warns of cells that are not shown in their column's format, or in one that was likely not meant: once for a column, at the
// first such row.
func misfits(at string, s Section, rows []Row, warn func(path, format string, args ...any)) {
	for _, c := range s.Columns {
		if c.Format == nil {
			continue
		}
		first, more, large := -1, 0, -1
		for n := range rows {
			v := rows[n].Member(c.Key)
			switch share, _ := Number(v); {
			case fits(*c.Format, v):
				if *c.Format == Percent && large < 0 && math.Abs(share) >= largeShare {
					large = n
				}
			case first < 0:
				first = n
			default:
				more++
			}
		}
		if first >= 0 {
			warn(fmt.Sprintf("%s/%d", at, first), "%q of row %d is %s, which is not in the format %s: it is shown as it is, as in %d more rows; "+
				"write %s, or null", shown(c.Key), first, shown(string(rows[first].Member(c.Key))), *c.Format, more, wanted[*c.Format])
		}
		if large >= 0 {
			warn(fmt.Sprintf("%s/%d", at, large), "%q of row %d is %s and is shown a hundred times as large: percent takes %s", shown(c.Key), large,
				shown(string(rows[large].Member(c.Key))), wanted[Percent])
		}
	}
}

// largeShare is from where on a share was likely written as a percentage.
const largeShare = 10

// emptyColumns warns of those that no row has anything for.
func emptyColumns(at string, s Section, rows []Row, warn func(path, format string, args ...any)) {
	if len(rows) == 0 {
		return
	}
	filled, members := make([]bool, len(s.Columns)), map[string]bool{}
	for i := range rows {
		for name := range rows[i].members {
			members[name] = true
		}
		for n, c := range s.Columns {
			filled[n] = filled[n] || !empty(rows[i].Member(c.Key))
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
