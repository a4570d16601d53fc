package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"

	"hub.internal/pkg/csvguard"
	"hub.internal/services/admin"
)

// CSV is a table as spreadsheets read it: UTF-8 with a mark that says so, a line for the headings, values whole and as they
// came. A text that a spreadsheet would take for a formula gets an apostrophe in front; a number stays one.
func CSV(s admin.Section) ([]byte, error) {
	b := bytes.NewBufferString("\ufeff")
	w := csv.NewWriter(b)
	w.UseCRLF = true
	line := make([]string, len(s.Columns))
	for n, column := range s.Columns {
		line[n] = csvguard.Cell(column.Label)
	}
	if err := w.Write(line); err != nil {
		return nil, err
	}
	for _, raw := range s.Rows {
		var row admin.Row
		if err := json.Unmarshal(raw, &row); err != nil {
			return nil, err
		}
		for n, column := range s.Columns {
			line[n] = field(row.Member(column.Key))
		}
		if err := w.Write(line); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// field is a value as a field of CSV has it: whole and as it came.
func field(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return ""
	case raw[0] == '"':
		var s string
		_ = json.Unmarshal(raw, &s) // it was read before
		return csvguard.Cell(s)
	case raw[0] == '[', raw[0] == '{':
		var b bytes.Buffer
		_ = json.Compact(&b, raw) // as above
		return b.String()
	}
	return string(raw)
}
