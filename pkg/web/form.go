package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web/i18n"
)

// Field is a labelled input with its error beside it: {{template "field" .Data.Email}}.
type Field struct {
	// ID is that of the element, where a page has several fields of one name. Default: the name.
	ID          string
	Name, Label string
	// Type of the input; "textarea", "select" (with Options) and "checks" (a box for each of the Options) are known
	// too. Default "text".
	Type  string
	Value string
	// Values are those of the boxes that are checked.
	Values       []string
	Hint         string
	Error        string
	Autocomplete string
	Placeholder  string
	Options      []Option
	// Accept names the types that an input of type "file" offers.
	Accept    string
	Rows      int
	MaxLength int
	// Min and Max bound a number; a Max of 0 is no bound.
	Min, Max int64
	Required bool
	// Quiet leaves out the remark that the field may be left empty: in a search all may.
	Quiet     bool
	Autofocus bool
}

// Option is a choice of a select, or a box of checks; Hint says what the box means.
type Option struct{ Value, Text, Hint string }

// Checked tells whether the box with a value is checked.
func (f Field) Checked(value string) bool { return slices.Contains(f.Values, value) }

// Element is the id of the input.
func (f Field) Element() string { return cmp.Or(f.ID, f.Name) }

// DescribedBy names what a screen reader reads out after the label.
func (f Field) DescribedBy() string {
	var ids []string
	if f.Error != "" {
		ids = append(ids, f.Element()+"-error")
	}
	if f.Hint != "" {
		ids = append(ids, f.Element()+"-hint")
	}
	return strings.Join(ids, " ")
}

// Form reads the fields of a POST. A body that is too large or broken is a fault.
func Form(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil {
		return nil, unreadable(err)
	}
	return r.PostForm, nil
}

// unreadable is the fault of a form that could not be read. That of one which is too large says so by itself.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return fault.New(fault.Validation, "The form could not be read.").Because(err)
}

// Posted is a page that takes a form: its handler is given the fields.
func Posted(do func(w http.ResponseWriter, r *http.Request, form url.Values) error) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		form, err := Form(r)
		if err != nil {
			return err
		}
		return do(w, r, form)
	}
}

// Problems are the messages of an E_VALIDATION for the fields of a form, as sentences; those of
// no field are under "". They are nil for any other error.
func Problems(err error) map[string]string {
	violations := schema.ViolationsOf(err)
	if len(violations) == 0 {
		if fault.Is(err, fault.Validation) {
			return map[string]string{"": fault.From(err).Message}
		}
		return nil
	}
	problems := map[string]string{}
	for _, v := range violations {
		name := strings.TrimPrefix(v.Path, "/")
		if _, known := problems[name]; !known {
			problems[name] = "This " + strings.TrimSuffix(v.Message, ".") + "."
		}
	}
	return problems
}

// File is what was uploaded.
type File struct {
	// Name is the sender's own name for it: to show, never a path to open.
	Name string
	Data []byte
}

// Upload reads a form of multipart/form-data and the file in one of its fields. Without a file
// there it is empty. What HandleUpTo lets through is held in memory.
func Upload(r *http.Request, field string) (File, url.Values, error) {
	if err := r.ParseMultipartForm(math.MaxInt64); err != nil {
		return File{}, nil, unreadable(err)
	}
	f, header, err := r.FormFile(field)
	if errors.Is(err, http.ErrMissingFile) {
		return File{}, r.PostForm, nil
	} else if err != nil {
		return File{}, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return File{header.Filename, data}, r.PostForm, err
}

// Bar is a progress bar of several kinds of progress: {{template "bar" .Data.Bar}}. What the
// parts lack of the total stays empty.
type Bar struct {
	// Label tells in words what the bar shows.
	Label string
	Total int
	Parts []Part
}

// Part is one kind of progress. Kind is that of a badge: "good", "bad", "warn", "info" or "".
type Part struct {
	Kind  string
	Count int
}

// barLength is the bar's length in the units of its drawing.
const barLength = 1000

// Segment is a part as it is drawn.
type Segment struct {
	Kind          string
	Start, Length float64
}

// Segments are the parts that have something in them, none too short to be seen.
func (b Bar) Segments() []Segment {
	const visible = 8
	var out []Segment
	at := 0.0
	for _, p := range b.Parts {
		if p.Count <= 0 || b.Total <= 0 {
			continue
		}
		length := min(max(barLength*float64(p.Count)/float64(b.Total), visible), barLength-at)
		out = append(out, Segment{p.Kind, at, length})
		at += length
	}
	return out
}

// functions are those of every template.
var functions = template.FuncMap{
	"asset":  func(string) (string, error) { return "", errors.New("replaced by the site's own") },
	"when":   momentHTML,
	"second": secondHTML,
	"day":    dayHTML,
	"number": Number,
	"badge":  func(kind, text string) Badge { return Badge{kind, text} },
	"join":   strings.Join,
	"spoken": spoken,
	"dict":   dict,
}

// spoken is the attribute that tells the language of what somebody wrote, where its letters tell it: a browser chooses the glyphs by it,
// and a screen reader its voice.
func spoken(s string) template.HTMLAttr {
	language := text.Language(s)
	if language == "" {
		return ""
	}
	return template.HTMLAttr(` lang="` + language + `"`) //nolint:gosec // one of two words
}

// momentHTML shows a moment in UTC; times.js shows the reader's own time instead.
func momentHTML(t any) template.HTML {
	at, ok := t.(time.Time)
	if p, isPointer := t.(*time.Time); isPointer && p != nil {
		at, ok = *p, true
	}
	if !ok || at.IsZero() {
		return `<span class="muted">–</span>`
	}
	at = at.UTC()
	minute := at.Format("2006-01-02 15:04")
	// All are digits and punctuation. The script puts the reader's own time in place of the text.
	return template.HTML(`<time datetime="` + at.Format(time.RFC3339) + `" title="` + minute + ` UTC">` +
		minute + ` <span class="zone">UTC</span></time>`)
}

// secondHTML is momentHTML with the second.
func secondHTML(at time.Time) template.HTML {
	at = at.UTC()
	second := at.Format(time.DateTime)
	return template.HTML(`<time class="second" datetime="` + at.Format(time.RFC3339) + `" title="` + second + ` UTC">` + second +
		` <span class="zone">UTC</span></time>`)
}

// dayHTML shows the day of a moment, in UTC until times.js puts the reader's own in its place.
func dayHTML(at time.Time) template.HTML {
	at = at.UTC()
	return template.HTML(`<time class="day" datetime="` + at.Format(time.RFC3339) + `" title="` + at.Format("2006-01-02 15:04") + ` UTC">` +
		at.Format(time.DateOnly) + `</time>`)
}

// speaking are the functions whose words are of a language.
func speaking(c *i18n.Catalogue) template.FuncMap {
	return template.FuncMap{
		"lang":       c.Code,
		"languages":  func() []i18n.Language { return i18n.Languages },
		"say":        func(message string) string { return c.Text(message) },
		"translated": c.Has,
		"plural":     func(n int, one, many string) string { return c.Plural(Number(n), n == 1, one, many) },
		"size":       func(bytes int) string { return size(c, bytes) },
		"age": func(before string, at, now time.Time, after string) template.HTML {
			return ageHTML(c, before, at, now, after)
		},
	}
}

// ageHTML tells in words of the caller's how long ago a moment was: "waiting" and "" make "waiting 3 h".
func ageHTML(c *i18n.Catalogue, before string, at, now time.Time, after string) template.HTML {
	at = at.UTC()
	message := c.Text(strings.TrimSpace(before + " {1} " + after))
	text := template.HTML(template.HTMLEscapeString(strings.Replace(message, "{1}", ago(c, now.Sub(at)), 1)))
	return `<time class="age" datetime="` + template.HTML(at.Format(time.RFC3339)) + `" title="` +
		template.HTML(at.Format("2006-01-02 15:04")) + ` UTC">` + text + `</time>`
}

// ago is a time that has passed, as people say it: "3 h". What is not a minute is "<1 min".
func ago(c *i18n.Catalogue, d time.Duration) string {
	switch {
	case d < time.Minute:
		return c.Plural("<1", false, "min", "min")
	case d < time.Hour:
		return c.Plural(strconv.Itoa(int(d.Minutes())), false, "min", "min")
	case d < 48*time.Hour:
		return c.Plural(strconv.Itoa(int(d.Hours())), false, "h", "h")
	}
	return c.Plural(Number(int(d.Hours()/24)), false, "days", "days")
}

// Number groups the digits of a whole number: 12,345.
func Number(n any) string {
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// Size is a number of bytes as people read it: 900 bytes, 64 KiB, 1.5 MiB.
func Size(bytes int) string { return size(nil, bytes) }

func size(c *i18n.Catalogue, bytes int) string {
	n := float64(bytes)
	switch {
	case n < 1<<10:
		return c.Plural(Number(bytes), bytes == 1, "byte", "bytes")
	case n < 1<<20:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", n/(1<<10)), ".0") + " KiB"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n/(1<<20)), ".0") + " MiB"
}

// Plural is a number of things in English: 1 draft, 2,000 drafts.
func Plural(n int, one, many string) string {
	return (*i18n.Catalogue)(nil).Plural(Number(n), n == 1, one, many)
}

// PluralIn is Plural in the language of who is answered.
func PluralIn(ctx context.Context, n int, one, many string) string {
	return i18n.From(ctx).Plural(Number(n), n == 1, one, many)
}

// dict hands several values to a part.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict takes pairs")
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("dict takes names")
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}
