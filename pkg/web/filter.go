package web

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // an image has no zones of its own

	"hub.internal/pkg/text"
	"hub.internal/pkg/web/i18n"
)

// maxFilterText bounds what a filter looks for, in characters.
const maxFilterText = 200

// momentLayouts are the forms of a time that people and fields write.
var momentLayouts = []string{"2006-01-02 15:04", localMoment, "2006-01-02T15:04:05", time.DateOnly, time.RFC3339}

// FilterForm is the form above a list, as the address of the page has it: the address is the saved search. A page reads its fields
// one after the other with Text, Choice and Moment, which keep what was asked for in Fields and in Values.
type FilterForm struct {
	// Fields are those of the form, with what was asked for.
	Fields []Field
	// Values is the address, without what is empty or was not understood.
	Values url.Values
	// Wrong tells that a time could not be read: the list would silently be another one.
	Wrong bool

	query url.Values
}

// ReadFilter begins the form of an address.
func ReadFilter(query url.Values) FilterForm { return FilterForm{query: query, Values: url.Values{}} }

// Typed is what the address has under a name, trimmed and cut to 200 characters that a store can hold. It is no field of the form.
func (f *FilterForm) Typed(name string) string {
	s := text.Head(strings.TrimSpace(text.Storable(f.query.Get(name))), maxFilterText)
	if s != "" {
		f.Values.Set(name, s)
	}
	return s
}

// Text adds a field, and returns what was typed into it.
func (f *FilterForm) Text(x Field) string {
	x.Value, x.MaxLength, x.Autocomplete, x.Quiet = f.Typed(x.Name), maxFilterText, "off", true
	f.Fields = append(f.Fields, x)
	return x.Value
}

// Choice adds a field with options, and returns the value that was chosen; empty for one that is none of them.
func (f *FilterForm) Choice(x Field, options ...Option) string {
	x.Type, x.Options = "select", options
	s := f.Text(x)
	if !slices.ContainsFunc(options, func(o Option) bool { return o.Value == s }) {
		f.Values.Del(x.Name)
		f.Fields[len(f.Fields)-1].Value = ""
		return ""
	}
	return s
}

// Moment adds a field for a time, and returns it; zero for none. One that cannot be read is marked at its field. What is typed is in the
// zone that the address names, as the form does for a reader with JavaScript, and else in UTC; the field says in which.
func (f *FilterForm) Moment(x Field) time.Time {
	zone := f.zone()
	x.Type, x.Hint = "datetime-local", zone.String()
	s := f.Text(x)
	field := &f.Fields[len(f.Fields)-1]
	for _, layout := range momentLayouts {
		if at, err := time.ParseInLocation(layout, s, zone); err == nil && at.Year() > 1970 && at.Year() < 9999 {
			field.Value = at.In(zone).Format(localMoment)
			if zone != time.UTC {
				f.Values.Set(zoneName, zone.String())
			}
			return at.UTC()
		}
	}
	if s != "" {
		field.Error = i18n.N("This is no time such as 2026-01-31 09:30.")
		f.Wrong = true
	}
	return time.Time{}
}

// zoneName is the name of the time zone in an address, and localMoment a time as the field of a form has it.
const zoneName, localMoment = "zone", "2006-01-02T15:04"

// zone is the time zone that the address names by its name in the IANA database, else UTC. The first question adds the hidden field in
// which a script tells that of the reader.
func (f *FilterForm) zone() *time.Location {
	name := f.query.Get(zoneName)
	zone, err := time.LoadLocation(name)
	if err != nil || len(name) > maxZone || name == "Local" || name == "" {
		name, zone = "", time.UTC
	}
	if !slices.ContainsFunc(f.Fields, func(x Field) bool { return x.Name == zoneName }) {
		f.Fields = append(f.Fields, Field{Name: zoneName, Type: "hidden", Value: name})
	}
	return zone
}

// maxZone bounds the name of a time zone, in bytes.
const maxZone = 64

// Address is a page of the list with the filter, and one value changed; an empty one leaves it out.
func (f FilterForm) Address(path, name, value string) string {
	v := url.Values{}
	maps.Copy(v, f.Values)
	if v.Del(name); value != "" {
		v.Set(name, value)
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// Searches tells that something is looked for.
func (f FilterForm) Searches() bool { return len(f.Values) > 0 }

// Detail is what the audit log keeps of the filter, by the names in the address.
func (f FilterForm) Detail() map[string]string {
	d := map[string]string{}
	for name := range f.Values {
		d[name] = f.Values.Get(name)
	}
	return d
}
