package suppression

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

const (
	// An entry may go over a few lines when a field is quoted. A quotation that nobody ends
	// must not swallow the file, so one that is longer is a bad line by itself.
	maxEntryLines = 20
	maxEntryBytes = 64 << 10
)

// csvRow is a row of a file: its fields, or the problem with it.
type csvRow struct {
	// Line is the number of its first line, from 1, and Text that line as the file has it.
	Line    int
	Text    string
	Fields  []string
	Problem string
}

// csvRows reads the rows of a CSV file (RFC 4180; also with ; or tab, with or without a byte
// order mark), one by one. Empty rows are left out. A row that cannot be read is one line.
func csvRows(data []byte) iter.Seq[csvRow] {
	return func(yield func(csvRow) bool) {
		data := bytes.TrimPrefix(data, []byte("\ufeff"))
		comma := separator(data)
		for line := 1; len(data) > 0; {
			row := csvRow{Line: line}
			first := lineEnd(data)
			row.Text = strings.TrimRight(string(data[:first]), "\r\n")
			fields, size, lines, problem := readEntry(data, comma)
			if problem != "" {
				fields, size, lines = nil, first, 1
			}
			row.Fields, row.Problem = fields, problem
			data, line = data[size:], line+lines
			if problem == "" && blank(fields) {
				continue
			}
			if !yield(row) {
				return
			}
		}
	}
}

// at is a field of the row, trimmed; rows may be short.
func (r csvRow) at(column int) string {
	if column < 0 || column >= len(r.Fields) {
		return ""
	}
	return strings.TrimSpace(r.Fields[column])
}

// blank tells a line without any text.
func blank(fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return strings.TrimSpace(f) != "" })
}

// lineEnd is the length of the first line with its end: LF, CRLF or CR.
func lineEnd(data []byte) int {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return len(data)
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2
	}
	return i + 1
}

// separator is the one that the first line has most of.
func separator(data []byte) byte {
	first := data[:min(lineEnd(data), maxEntryBytes)]
	best := byte(',')
	for _, c := range []byte{';', '\t'} {
		if bytes.Count(first, []byte{c}) > bytes.Count(first, []byte{best}) {
			best = c
		}
	}
	return best
}

// readEntry reads the first row: its fields, and how many bytes and lines it takes.
func readEntry(data []byte, comma byte) (fields []string, size, lines int, problem string) {
	for i := 0; ; {
		field, next, broken, problem := readField(data, i, comma)
		if problem != "" {
			return nil, 0, 0, problem
		}
		fields, lines, i = append(fields, field), lines+broken, next
		if lines >= maxEntryLines || i > maxEntryBytes {
			return nil, 0, 0, "the entry is too long"
		}
		if i >= len(data) {
			return fields, len(data), lines + 1, ""
		}
		if data[i] == comma {
			i++
			continue
		}
		return fields, i + lineEnd(data[i:]), lines + 1, ""
	}
}

// readField reads the field at i: its text, where it ends, and how many lines it has ended.
func readField(data []byte, i int, comma byte) (field string, end, lines int, problem string) {
	ends := func(c byte) bool { return c == comma || c == '\n' || c == '\r' }
	if i >= len(data) || data[i] != '"' {
		end = i
		for end < len(data) && !ends(data[end]) && end-i <= maxEntryBytes {
			end++
		}
		return string(data[i:end]), end, 0, ""
	}
	var b []byte
	for i++; i < len(data) && len(b) <= maxEntryBytes && lines < maxEntryLines; i++ {
		c := data[i]
		switch {
		case c != '"':
			if c == '\n' || c == '\r' && (i+1 == len(data) || data[i+1] != '\n') {
				lines++
			}
			b = append(b, c)
		case i+1 < len(data) && data[i+1] == '"':
			b, i = append(b, c), i+1
		case i+1 == len(data) || ends(data[i+1]):
			return string(b), i + 1, lines, ""
		default:
			return "", 0, 0, "there is text behind a closing quotation mark"
		}
	}
	return "", 0, 0, "a quotation mark is not closed"
}
