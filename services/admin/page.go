package admin

import (
	"bytes"
	"encoding/json"
	"time"
)

// Page is one version of what is at an item's address. A version never changes.
type Page struct {
	// Version counts from 1.
	Version int
	// Title is the heading, Description the line below it; nil without one.
	Title       string
	Description *string
	// Sections are what is left of what was sent, after cleaning.
	Sections Sections
	// Bytes is the length of the sections as they are stored.
	Bytes int
	// CreatedBy is a label, nil without one.
	CreatedBy *string
	// RestoredFrom is the version that was copied; 0 for one that was written.
	RestoredFrom int
	Origin       Origin
	CreatedAt    time.Time
}

// By is who wrote the version, as people are told it: the label, with the credential or person behind it.
func (p Page) By() string {
	who := p.Origin.Service
	if p.Origin.ExternalUserID != "" && p.Origin.ExternalUserID != p.Origin.CredentialID {
		who = p.Origin.ExternalUserID
	}
	if p.CreatedBy == nil || *p.CreatedBy == "" || *p.CreatedBy == who {
		return who
	}
	return *p.CreatedBy + " (" + who + ")"
}

// Sections are the parts of a page, stored as JSON.
type Sections []Section

// JSON is how they are stored.
func (s Sections) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	// A page is stored as it was sent: < stays <.
	e.SetEscapeHTML(false)
	if s == nil {
		s = Sections{}
	}
	err := e.Encode(s)
	return bytes.TrimSpace(b.Bytes()), err
}

// Place is an item with a version of its page.
type Place struct {
	// Group and Item are slugs.
	Group, Item string
	// Name is the item's.
	Name string
	// Href is where the item leads instead of a page of its own, nil for one that has it.
	Href *string
	Page Page
	// Newest is the version that the address shows; 0 while there is none.
	Newest int
}

// Path is the page's address.
func (p Place) Path() string { return PagePath(p.Group, p.Item) }
