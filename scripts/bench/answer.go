package main

// Targets write the same rows in different ways: nested objects, arrays under column names, JSON in a text, dates with
// and without T. Here they become rows of texts, so that compare can hold one against the other.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// record is a row of some target's answer by field name.
type record map[string]any

// decode reads JSON with numbers kept as they are written.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	// A float64 would make two numbers equal that are not.
	d.UseNumber()
	return d.Decode(v)
}

// pick takes the fields out of a record, also out of the objects in it.
func pick(r record, fields []string) ([]string, error) {
	row := make([]string, len(fields))
	for i, f := range fields {
		v, ok := find(r, f)
		if !ok {
			return nil, fmt.Errorf("no field %s in the answer", f)
		}
		row[i] = plain(v)
	}
	return row, nil
}

// find looks for a field in a record, then in the objects in it: Hub nests what SQL has in one row.
func find(r record, field string) (any, bool) {
	if v, ok := r[field]; ok {
		return v, true
	}
	for _, inner := range r {
		if object, ok := inner.(map[string]any); ok {
			if v, ok := find(object, field); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// plain writes a value such that two targets' ways of writing it become equal: a DATETIME
// comes with or without T and Z.
func plain(v any) string {
	s := fmt.Sprint(v)
	// Only what has the form of a date is touched: a name may have a space or end with Z.
	const dateTime = len("2026-01-31T09:00:00")
	if len(s) >= dateTime && s[4] == '-' && s[7] == '-' && s[13] == ':' {
		s = strings.TrimSuffix(strings.TrimSuffix(strings.Replace(s, " ", "T", 1), "Z"), ".000")
	}
	return s
}

// records picks the fields of each.
func records(list []record, fields []string) ([][]string, error) {
	rows := make([][]string, len(list))
	for i, r := range list {
		var err error
		if rows[i], err = pick(r, fields); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// tuples are rows as arrays under a list of column names; of equal names the first counts.
func tuples(names []string, list [][]any, fields []string) ([][]string, error) {
	rows := make([][]string, len(list))
	for i, values := range list {
		for _, f := range fields {
			at := slices.Index(names, f)
			if at < 0 {
				return nil, fmt.Errorf("no column %s in the answer", f)
			}
			rows[i] = append(rows[i], plain(values[at]))
		}
	}
	return rows, nil
}

// difference says where two answers differ; empty when they are equal.
func difference(want, got [][]string) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if !slices.Equal(want[i], got[i]) {
			return fmt.Sprintf("row %d is %q, want %q", i+1, got[i], want[i])
		}
	}
	return ""
}
