package localserver

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MailSuffix ends the names of kept messages.
const MailSuffix = ".eml"

// Mail is a message as a recipient reads it.
type Mail struct {
	// File is the name of the file that it was read from.
	File string
	// From and To are those of the header, decoded; Subject too.
	From, To, Subject string
	// DeliveredTo is the recipient of the envelope.
	DeliveredTo string
	Header      mail.Header
	// Text and HTML are the first parts of their kind, decoded; empty without one.
	Text, HTML string
	Raw        []byte
}

// MailFiles lists the kept messages of a directory, oldest first.
// Their names begin with the time at which they were taken, so the order of names is that of time.
func MailFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), MailSuffix) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// OpenMail reads a kept message.
func OpenMail(dir, name string) (Mail, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return Mail{}, err
	}
	m, err := ReadMail(raw)
	m.File = name
	return m, err
}

// ReadMail reads a message. What can be read of a broken one is there beside the error.
func ReadMail(raw []byte) (Mail, error) {
	m := Mail{Raw: raw}
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return m, err
	}
	m.Header = message.Header
	m.From, m.To, m.Subject, m.DeliveredTo = decoded(m.Header.Get("From")), decoded(m.Header.Get("To")), decoded(m.Header.Get("Subject")),
		m.Header.Get("Delivered-To")
	return m, m.read(m.Header.Get, message.Body, 0)
}

// decoded is a header's text without encoded words; as it came where it cannot be decoded.
func decoded(text string) string {
	if plain, err := new(mime.WordDecoder).DecodeHeader(text); err == nil {
		return plain
	}
	return text
}

// maxNesting bounds how deep parts may lie in one another.
const maxNesting = 8

// read takes the parts that a person reads.
// Of several texts the first counts, as for a reader; attachments are passed over.
func (m *Mail) read(header func(string) string, body io.Reader, depth int) error {
	kind, params, err := mime.ParseMediaType(header("Content-Type"))
	if header("Content-Type") == "" {
		kind, err = "text/plain", nil
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(kind, "multipart/") && depth < maxNesting {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			p, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := m.read(p.Header.Get, p, depth+1); err != nil {
				return err
			}
		}
	}
	switch strings.ToLower(header("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	switch {
	case kind == "text/plain" && m.Text == "":
		m.Text = string(b)
	case kind == "text/html" && m.HTML == "":
		m.HTML = string(b)
	}
	return nil
}
