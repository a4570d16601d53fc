package web

import (
	"net/http"
	"time"
)

// Badge is a state in words, with the kind that gives its colour: "good", "bad", "warn", "info" or
// "". {{template "badge" .}}
type Badge struct{ Kind, Text string }

// RowsOnPage is how many rows a list of the console has on a page, where a row is a line or two.
const RowsOnPage = 25

// Pager leads through a list that is longer than a page: {{template "pager" .Data.Pager}}. The console's lists are read by keyset
// pagination: an address says after which row a page begins, so that a page costs the same wherever it is, and no row is shown twice
// or left out while others come and go. A link
// without an address is not there, and without either the pager is not.
type Pager struct {
	// Label says what there is more of: "More drafts".
	Label string
	// Back leads to the page before, or to the first one.
	Back, Next Link
	// Key is the shortcut that follows Next.
	Key string
}

// Choice is a filter of a list; each has an address: {{template "choices" .Data.Choices}}.
type Choice struct {
	Text, Href string
	Active     bool
	// Count is what the filter leaves; -1 is not known.
	Count int
}

// Finder stands above a list: a search, which part of the list is shown, and what adds to it.
// {{template "finder" .Data.Finder}}
type Finder struct {
	// Action is the address of the list, Label says what the search looks at, and Value is what it looks for.
	Action, Label, Value string
	// Hidden is what the search leaves as it is.
	Hidden map[string]string
	// Clear is the address of the list without the search.
	Clear string
	// Which says what the choices choose: "Which keys".
	Which   string
	Choices []Choice
	// Add leads to the page that adds to the list.
	Add Link
}

// Once is a secret that is shown this once: {{template "once" .Data.Once}}.
type Once struct {
	// ID is that of the element, Label names the secret, Hint says what to do with it.
	ID, Label, Value, Hint string
}

// Confirmation asks before something that is hard to take back; Site.Confirm is its page. It works
// without scripts, and with the keys that the page's help names.
type Confirmation struct {
	// Text says what will happen, Warning what speaks against it.
	Text, Warning string
	// Facts name what it happens to.
	Facts []Fact
	// Action is the address that the form is sent to, with what is Hidden and the Fields.
	Action string
	Hidden map[string]string
	Fields []Field
	// Button does it, Keep leads back.
	Button string
	Keep   Link
}

// Fact is a line of a Confirmation: a text, or a moment.
type Fact struct {
	Label, Value string
	At           time.Time
}

// keys are those of the page.
func (c Confirmation) keys() []Key {
	return []Key{{Press: "y", Does: c.Button}, {Press: "Esc", Does: c.Keep.Text}}
}

// Confirm answers a page that asks. Its Data is the confirmation.
func (s *Site) Confirm(w http.ResponseWriter, r *http.Request, p Page, c Confirmation) error {
	r = s.Speak(r)
	p.Data, p.Keys = c, append(p.Keys, c.keys()...)
	return s.execute(w, r, confirmationPage, "layout", p, takeFlash(w, r))
}

// Mark puts the problems of an E_VALIDATION at the fields of a form, by their names, and returns
// those of no field, as a sentence. It is false for any other error.
func Mark(err error, fields ...*Field) (rest string, ok bool) {
	problems := Problems(err)
	if problems == nil {
		return "", false
	}
	for _, f := range fields {
		f.Error = problems[f.Name]
		delete(problems, f.Name)
	}
	if rest = problems[""]; rest != "" {
		return rest, true
	}
	for name, problem := range problems {
		// It is about something that the form does not show.
		return name + ": " + problem, true
	}
	return "", true
}
