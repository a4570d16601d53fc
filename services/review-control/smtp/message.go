package smtp

import (
	"bytes"
	"encoding/base64"
	"fmt"
	netmail "net/mail"
	"net/url"
	"strings"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/review-control/mailer"
)

// mail is a message with its envelope, as it is sent.
type mail struct {
	from, to string
	data     []byte
}

// compose makes the mail: multipart/alternative (RFC 2046), or text alone, with the headers
// of RFC 2369 and RFC 8058 for unsubscribing. What could end a line or an address early is
// refused.
func compose(m mailer.Message) (mail, error) {
	envelope := m.Sender
	if envelope.Email == "" {
		envelope = m.From
	}
	if err := check(m, envelope); err != nil {
		return mail{}, err
	}
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithEncoding(encodingOf(m.Subject+m.Text+m.HTML)))
	out.SetMessageIDWithValue(m.ID)
	out.SetDateWithValue(m.Date)
	out.SetGenHeader(gomail.HeaderSubject, words(m.Subject))
	out.SetGenHeader("From", mailbox(m.From))
	out.SetGenHeader("To", mailbox(m.To))
	if !strings.EqualFold(envelope.Email, m.From.Email) {
		out.SetGenHeader("Sender", mailbox(envelope))
	}
	if m.Unsubscribe != "" {
		out.SetGenHeaderPreformatted(gomail.HeaderListUnsubscribe, "<"+m.Unsubscribe+">")
		out.SetGenHeaderPreformatted(gomail.HeaderListUnsubscribePost, "List-Unsubscribe=One-Click")
	}
	out.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		out.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	var data bytes.Buffer
	if _, err := out.WriteTo(&data); err != nil {
		return mail{}, err
	}
	return mail{from: envelope.Email, to: m.To.Email, data: data.Bytes()}, nil
}

// check refuses what must not stand in a header or in the envelope.
func check(m mailer.Message, envelope mailer.Address) error {
	for _, line := range []struct{ name, text string }{
		{"subject", m.Subject}, {"sender's name", m.From.Name}, {"recipient's name", m.To.Name}, {"envelope sender's name", envelope.Name},
		{"message id", m.ID}, {"unsubscribe address", m.Unsubscribe},
	} {
		if strings.ContainsFunc(line.text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' }) {
			return fmt.Errorf("the %s has control characters", line.name)
		}
	}
	for _, address := range []struct{ name, text string }{
		{"sender", m.From.Email}, {"recipient", m.To.Email}, {"envelope sender", envelope.Email},
	} {
		if !schema.IsEmail(address.text) {
			return fmt.Errorf("the %s %q is not one bare e-mail address", address.name, address.text)
		}
	}
	if strings.ContainsFunc(m.ID, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '<' || r == '>' }) ||
		strings.Count(m.ID, "@") != 1 || len(m.ID) > 250 {
		return fmt.Errorf("the message id %q has not the form of one", m.ID)
	}
	if m.Unsubscribe != "" {
		u, err := url.Parse(m.Unsubscribe)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(m.Unsubscribe) > 900 ||
			strings.ContainsFunc(m.Unsubscribe, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '<' || r == '>' }) {
			return fmt.Errorf("the unsubscribe address %q is not an address of the web", m.Unsubscribe)
		}
	}
	return nil
}

// encodingOf is the shorter way to write a text in ASCII. Quoted-printable needs three bytes
// for each that is not ASCII, base64 four for any three.
func encodingOf(text string) gomail.Encoding {
	foreign := 0
	for i := range len(text) {
		if text[i] >= 0x80 {
			foreign++
		}
	}
	if foreign > len(text)/6 {
		return gomail.EncodingB64
	}
	return gomail.EncodingQP
}

// mailbox is an address as a header has it.
func mailbox(a mailer.Address) string {
	if a.Name == "" || isPlain(a.Name) {
		return (&netmail.Address{Name: a.Name, Address: a.Email}).String()
	}
	return words(a.Name) + " <" + a.Email + ">"
}

const (
	// longestWord leaves room for the name of any header of ours in front of it: a header that
	// is folded before its first word has a space too many for some readers.
	longestWord = 60
	// inWord is how many bytes an encoded word of that length holds.
	inWord = (longestWord - len("=?UTF-8?b??=")) / 4 * 3
)

// words is s as a header has it: as it is if it comes back the same from folding and
// from any reader, else as encoded words (RFC 2047).
func words(s string) string {
	if isPlain(s) {
		return s
	}
	var encoded []string
	for s != "" {
		word := text.HeadBytes(s, inWord)
		encoded = append(encoded, "=?UTF-8?b?"+base64.StdEncoding.EncodeToString([]byte(word))+"?=")
		s = s[len(word):]
	}
	return strings.Join(encoded, " ")
}

// isPlain tells text of printable ASCII, with single spaces between words that fit into a
// line, none of which looks encoded: readers decode it even where the standard says not to.
func isPlain(text string) bool {
	for word := range strings.SplitSeq(text, " ") {
		if word == "" || len(word) > longestWord || strings.Contains(word, "=?") ||
			strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return false
		}
	}
	return true
}
