package suppression

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// Import is a file of addresses on its way to the suppression list.
type Import struct {
	ID               ID
	Name, Reason, By string
	At               time.Time
	// Status is one of the states of an import.
	Status string
	// Lines is the number of entries in the file, Done how many were read; these were Added
	// to the list, Known on it before, or Bad.
	Lines, Done, Added, Known, Bad int
	Finished                       *time.Time
}

// The states of an import.
const (
	ImportWaiting = "waiting"
	ImportRunning = "running"
	ImportDone    = "done"
)

const (
	// MaxImport bounds a file, in bytes.
	MaxImport = 16 << 20
	// MaxBadLines is how many of an import's bad lines are kept; all are counted.
	MaxBadLines = 1000
	// maxBadText bounds what is kept of a bad line, in characters.
	maxBadText = 200
	// importBatch is how many entries are stored at once.
	importBatch = 1000
)

// BadLine is an entry of a file that is no address.
type BadLine struct {
	Line         int
	Text, Reason string
}

// badLine is a row of a file as an entry that is no address.
func badLine(row csvRow, reason string) BadLine {
	return BadLine{Line: row.Line, Text: text.Head(text.Printable(row.Text), maxBadText), Reason: reason}
}

// maxFileName bounds the name of an imported file, in characters.
const maxFileName = 200

// StartImport keeps a CSV file of addresses, at most 16 MiB, for the import that follows. A
// column "email" has the addresses, without one the first column; a column "reason" goes
// before defaultReason. E_SCOPE for anybody but a person, E_VALIDATION.
func (l *List) StartImport(ctx context.Context, by string, name, defaultReason string, data []byte) (Import, error) {
	if err := caller.RequirePerson(ctx); err != nil {
		return Import{}, err
	}
	defaultReason, err := schema.Note("default_reason", defaultReason, MaxReason, false)
	if err != nil {
		return Import{}, err
	}
	refuse := func(rule, message string) (Import, error) {
		return Import{}, schema.Invalid("/file", rule, "%s", message)
	}
	switch {
	case len(data) > MaxImport:
		return refuse("maxBytes", fmt.Sprintf("must have at most %d bytes", MaxImport))
	case strings.IndexByte(string(data[:min(len(data), 4096)]), 0) >= 0:
		return refuse("csv", "must be a CSV file in UTF-8; this looks like another kind of file")
	}
	lines := 0
	for range rows(data) {
		lines++
	}
	if lines == 0 {
		return refuse("csv", "must have at least one address")
	}
	name = text.Shown(name, maxFileName)
	in := Import{Name: name, Reason: defaultReason, By: by, At: l.now(), Status: ImportWaiting, Lines: lines}
	return l.store.AddImport(ctx, in, data,
		l.entry(ctx, "suppression.import", lines, map[string]any{"name": name, "reason": defaultReason, "bytes": len(data)}))
}

// Import returns an import.
func (l *List) Import(ctx context.Context, id ID) (Import, error) {
	return l.store.Import(ctx, id)
}

// Imports returns the newest imports. limit is between 1 and 100; 0 is 50.
func (l *List) Imports(ctx context.Context, limit int) ([]Import, error) {
	return l.store.Imports(ctx, pageSize(limit))
}

// BadLines returns lines of an import that are no addresses, from behind a line (0 for the first page).
// limit is between 1 and 100; 0 is 50.
func (l *List) BadLines(ctx context.Context, id ID, after, limit int) ([]BadLine, error) {
	return l.store.BadLines(ctx, id, min(max(after, 0), MaxImport), pageSize(limit))
}

// Batch is a part of an import.
type Batch struct {
	// Entries is the number of entries that it is made of.
	Entries int
	Found   []Entry
	Bad     []BadLine
	At      time.Time
}

// RunImport is the job of an import. Each batch commits with how far the import is, so it
// may break off anywhere and go on there.
func (l *List) RunImport(ctx context.Context, id ID) error {
	in, err := l.store.Import(ctx, id)
	if err != nil || in.Status == ImportDone {
		return err
	}
	data, err := l.store.ImportData(ctx, id)
	if err != nil {
		return err
	}
	at := 0
	b := Batch{}
	commit := func() (err error) {
		b.At = l.now()
		in, err = l.store.ImportBatch(ctx, in, b)
		b = Batch{}
		return err
	}
	for row, columns := range rows(data) {
		if at++; at <= in.Done {
			continue
		}
		b.add(row, columns, in)
		if b.Entries == importBatch {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	if b.Entries > 0 {
		if err := commit(); err != nil {
			return err
		}
	}
	return l.store.EndImport(ctx, id, l.now())
}

// add reads a row of an import.
func (b *Batch) add(row csvRow, c columns, in Import) {
	b.Entries++
	email := row.at(c.email)
	switch {
	case row.Problem != "":
		b.Bad = append(b.Bad, badLine(row, row.Problem))
	case email == "":
		b.Bad = append(b.Bad, badLine(row, "there is no address"))
	case !schema.IsEmail(email):
		b.Bad = append(b.Bad, badLine(row, "this is no e-mail address"))
	default:
		reason := text.Shown(row.at(c.reason), MaxReason)
		if reason == "" {
			reason = in.Reason
		}
		b.Found = append(b.Found, Entry{Email: email, Reason: reason, Source: FromImport, By: in.By})
	}
}

// rows are the entries of a file behind its header.
func rows(data []byte) iter.Seq2[csvRow, columns] {
	return func(yield func(csvRow, columns) bool) {
		c, first := columns{0, -1}, true
		for row := range csvRows(data) {
			if first {
				first = false
				var isHeader bool
				if c, isHeader = header(row.Fields); isHeader {
					continue
				}
			}
			if !yield(row, c) {
				return
			}
		}
	}
}

// columns are where a file has what is imported; reason is -1 without one.
type columns struct{ email, reason int }

// header tells whether the first row of a file names its columns, and which they are.
func header(fields []string) (c columns, isHeader bool) {
	c = columns{0, -1}
	for i, f := range fields {
		switch strings.ToLower(strings.TrimSpace(f)) {
		case "email", "e-mail":
			if !isHeader {
				c.email, isHeader = i, true
			}
		case "reason":
			c.reason = i
		}
	}
	if !isHeader {
		c.reason = -1
	}
	return c, isHeader
}
