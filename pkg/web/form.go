package web

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hub.internal/pkg/fault"
)

// Field is a labelled input with its error beside it: {{template "field" .Data.Email}}.
type Field struct {
	Name, Label string
	// Type of the input; "textarea" and "select" (with Options) are known too. Default "text".
	Type         string
	Value        string
	Hint         string
	Error        string
	Autocomplete string
	Placeholder  string
	Options      []Option
	Rows         int
	MaxLength    int
	Required     bool
	Autofocus    bool
}

// Option is a choice of a select.
type Option struct{ Value, Text string }

// DescribedBy names what a screen reader reads out after the label.
func (f Field) DescribedBy() string {
	var ids []string
	if f.Error != "" {
		ids = append(ids, f.Name+"-error")
	}
	if f.Hint != "" {
		ids = append(ids, f.Name+"-hint")
	}
	return strings.Join(ids, " ")
}

// Form reads the fields of a POST. A body that is too large or broken is a fault.
func Form(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, err
		}
		return nil, fault.New(fault.Validation, "The form could not be read.").Because(err)
	}
	return r.PostForm, nil
}

// functions are those of every template.
var functions = template.FuncMap{
	"asset":  func(string) (string, error) { return "", errors.New("replaced by the site's own") },
	"when":   when,
	"number": Number,
	"plural": plural,
	"join":   strings.Join,
	"dict":   dict,
}

// when shows a moment; hub.js adds the reader's own time to it.
func when(t any) template.HTML {
	at, ok := t.(time.Time)
	if p, isPointer := t.(*time.Time); isPointer && p != nil {
		at, ok = *p, true
	}
	if !ok || at.IsZero() {
		return `<span class="muted">–</span>`
	}
	at = at.UTC()
	// Both are digits and punctuation.
	return template.HTML(`<time datetime="` + at.Format(time.RFC3339) + `">` + at.Format("2006-01-02 15:04") + ` UTC</time>`)
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

func plural(n int, one, many string) string {
	if n == 1 {
		return Number(n) + " " + one
	}
	return Number(n) + " " + many
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
