// Package body reads a mail body as its recipient will, when pkg/markup has taken out of it what
// could hide or move text: what is said, where each link really leads, what a look at the page
// does not tell, and about how large it is. It judges nothing and fetches nothing.
package body

import (
	"strings"

	"golang.org/x/net/html"

	"hub.internal/pkg/markup/prose"
	"hub.internal/pkg/text"
)

// View is what a body is to a reader.
type View struct {
	// Text is the body in plain text, as a recipient without HTML gets it. Lines end with \n.
	Text string
	// Links are the addresses that the body can lead to, in order, each once.
	Links []Link
	// Warnings are what somebody who looks at the body may miss.
	Warnings []Warning
	// Pictures are those elsewhere, in order. They are described where they stand, so that nobody misses them; Warnings have
	// something of them where they are all that there is.
	Pictures []Picture
	Size     Size
}

// Link is an address in a body.
type Link struct {
	// Text is what the link shows; empty when it shows nothing.
	Text string
	// Href is the address as it is written, without surrounding white space.
	Href string
	// Host is where a browser would really go: lower case, an international name followed by
	// its ASCII form in parentheses. For mailto it is the domain; empty where there is none.
	Host string
	// Misleading tells that the text, or the address at first sight, names another host.
	Misleading bool
}

// Warning is a part of a body and why a look at it does not tell it.
type Warning struct {
	Text, Reason string
}

// Flagged tells that somebody has to judge the body by itself: a look at it does not tell all.
func (v View) Flagged() bool {
	return v.Misleading() > 0 || len(v.Warnings) > 0
}

// Misleading is how many links name another host than they lead to.
func (v View) Misleading() int {
	n := 0
	for _, l := range v.Links {
		if l.Misleading {
			n++
		}
	}
	return n
}

// Read reads plain text, or HTML that markup.Mail has let stay. The time is linear in its length.
func Read(text string, isHTML bool) View {
	r := &reader{seen: map[[2]string]bool{}}
	if !isHTML {
		r.linksIn(text)
		r.view.Text = text
		r.view.Size = sizeOf(&html.Node{Type: html.TextNode, Data: text}, true)
		return r.view
	}
	root, err := html.ParseWithOptions(strings.NewReader("<!doctype html>"+text), html.ParseOptionEnableScripting(false))
	if err != nil { // nested too deep, which markup lets nothing be
		return Read(text, false)
	}
	r.looks = []look{pageLook}
	r.view.Text = prose.Write(root, r)
	switch {
	case r.words: // there is something to judge
	case len(r.view.Pictures) > 0:
		r.tell("", "all that it says is in pictures, which are not loaded here")
	case blank(r.view.Text):
		r.tell("", "nothing in it can be read")
	}
	r.report()
	r.view.Size = sizeOf(root, false)
	return r.view
}

// fold makes one space of each run of white space, and none at the ends.
func fold(s string) string { return text.OneLine(s) }

// blank tells that there is nothing to see in a text.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
