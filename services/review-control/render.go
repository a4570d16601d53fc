package reviewcontrol

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/markup"
	"hub.internal/pkg/text"
	"hub.internal/services/review-control/body"
)

// Content is what a recipient reads, as it is handed over to the mail server before it is
// encoded (RFC 2045). The address to unsubscribe at is no part of it: that is made when the
// mail was approved, and stands in a header alone.
type Content struct {
	// From is whom the recipient sees the mail come from. Sender is Hub's own mailbox: the
	// envelope's return path, and the header Sender where From is another.
	From, Sender, To Address
	Subject          string
	// HTML is a whole document, empty for a mail of plain text. Text is always there. Lines end
	// with CRLF.
	HTML, Text string
}

// contentVersion names what Hash is taken over.
const contentVersion = "hub mail 2"

// Hash is what a decision is bound to: SHA-256 over all of the content, each part behind its
// length, so that no two contents share one. It is in hexadecimal.
func (c Content) Hash() string {
	h := sha256.New()
	for _, part := range []string{
		contentVersion, c.From.Name, c.From.Email, c.Sender.Name, c.Sender.Email, c.To.Name, c.To.Email, c.Subject, c.HTML, c.Text,
	} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Rendering is a target's content, and what a reviewer should know of it.
type Rendering struct {
	Content
	// Removed is what was taken out of what authoring has.
	Removed []markup.Removed
	View    body.View
}

// Told is a part of a mail and why a look at it does not tell it.
type Told = body.Told

// Shown is the HTML as a reviewer sees it, to whom nothing is loaded: the bytes that are sent, with a line in the
// place of each picture that is elsewhere.
func (r Rendering) Shown() string { return body.Shown(r.HTML) }

// The page that a mail's HTML stands in. Its colours are said, so that no program sets others, and
// links never lead away from what shows the mail.
const (
	documentHead = `<!doctype html>` + "\n" +
		`<html lang="und"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
		`<meta name="color-scheme" content="light"><title></title><base target="_blank"></head>` + "\n" +
		`<body style="margin:16px;background-color:#ffffff;color:#1b1b1b;font-family:Arial,Helvetica,sans-serif;` +
		`font-size:15px;line-height:1.5;overflow-wrap:anywhere">` + "\n"
	documentFoot = "\n</body></html>\n"
)

// Document is a whole page around the HTML of a mail's body.
func Document(fragment string) string { return documentHead + fragment + documentFoot }

// documentPage is what of that matters to a reader.
var documentPage = body.Page{
	Color: markup.Color{R: 0x1b, G: 0x1b, B: 0x1b}, Background: markup.Color{R: 255, G: 255, B: 255},
	FontSize: markup.MailFontSize, LineHeight: 1.5, Margin: 16,
}

// allowed is what of an HTML body stays.
var allowed = markup.Mail()

// render is what a target gets: what a page shows, what a decision is bound to and what is handed
// over are its bytes. Whom the mail is from and for is what was kept when the draft was queued; of
// authoring are the subject and the body alone.
func (s *Service) render(from Address, to Address, m Mail) Rendering {
	r := Rendering{Content: Content{From: s.From(from), Sender: s.c.From, To: to}}
	subject, removed := markup.Text(m.Subject)
	r.Subject = text.OneLine(subject)
	for i := range removed {
		removed[i].What += " in the subject"
	}
	for _, a := range []*Address{&r.From, &r.To} {
		name, _ := markup.Text(a.Name)
		a.Name = text.OneLine(name)
	}
	if !m.HTML {
		plain, more := markup.Text(m.Body)
		r.Removed = markup.Merge(removed, more)
		r.View = body.Read(plain, false, documentPage)
		r.Text = lines(plain)
		return r
	}
	fragment, more := allowed.Clean(m.Body)
	r.Removed = markup.Merge(removed, more)
	r.View = body.Read(fragment, true, documentPage)
	r.HTML, r.Text = lines(Document(fragment)), lines(r.View.Text)
	return r
}

// lines is a text with the ends of lines that it has in a mail, also of the last one.
func lines(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return strings.ReplaceAll(text, "\n", "\r\n")
}

// renderings hands over what the targets of a review get, in the order of their indexes, with what
// authoring has beside it. It is E_NOT_FOUND when authoring has not all of them.
func (s *Service) renderings(ctx context.Context, r Review, targets []Target, each func(TargetView) error) error {
	byIndex, indexes := make(map[int]Target, len(targets)), make([]int, len(targets))
	for i, t := range targets {
		byIndex[t.Index], indexes[i] = t, t.Index
	}
	answered := 0
	err := s.c.Drafts.Mails(ctx, r.DraftID, indexes, func(index int, m Mail) error {
		t, asked := byIndex[index]
		if !asked {
			return fmt.Errorf("authoring answers target %d of draft %s unasked", index, r.DraftID)
		}
		delete(byIndex, index)
		answered++
		v := TargetView{Target: t, Mail: m, Rendering: s.render(r.Sender, Address{t.ToName, t.ToEmail}, m)}
		v.Flags = flagsOf(v)
		return each(v)
	})
	if err == nil && answered != len(targets) {
		for _, index := range slices.Sorted(slices.Values(indexes)) {
			if _, missing := byIndex[index]; missing {
				return MissingTarget(r.DraftID, index)
			}
		}
	}
	return err
}

// The heights in CSS pixels that a page keeps free for a preview before it is measured.
const (
	leastFrame   = 120
	highestFrame = 1500
)

// FrameHeight is the height in CSS pixels that a page keeps free for the mail's preview. The page's script gives the
// preview the height that it measures; a browser without scripts leaves it at this one, with a bar to scroll by.
func (r Rendering) FrameHeight() int {
	const slack = 24 // so that a line more needs no bar to scroll by
	return min(max(r.View.Size.Height+slack, leastFrame), highestFrame)
}

// longest is the height in CSS pixels up to which a mail is read without an effort: three screens.
const longest = 2400

// large tells that a mail is longer than three screens, or wider than it is shown on a desk: part of it is out of view
// until somebody scrolls.
func (r Rendering) large() bool { return r.View.Size.Width > body.Desk || r.View.Size.Height > longest }

// changed is E_CONFLICT for a mail that is not what a reviewer saw.
func changed(index int) error {
	return fault.New(fault.Conflict, "The mail to target %d is not what you were shown; open it again.", index+1)
}
