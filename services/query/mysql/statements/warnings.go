package statements

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
)

// maxWarnings is how many of the server's warnings an answer has, each of another kind.
const maxWarnings = 5

// deprecations are what MySQL says of things that it understands and will not for ever.
var deprecations = map[string]bool{"1287": true, "1681": true, "3719": true, "4119": true}

// warnings asks the session for the warnings of the statement before.
// Warnings are told by kind, with how many there were of it: a cast that fails does so in each row. The order is the
// server's.
func (s *session) warnings(ctx context.Context) (list []tool.Warning, err error) {
	rows, err := s.Conn.(driver.QueryerContext).QueryContext(ctx, "SHOW WARNINGS", nil)
	if err != nil {
		return nil, err
	}
	values := make([]driver.Value, len(rows.Columns()))
	var seen []string
	more, total := map[string]int{}, 0
	for {
		if err := rows.Next(values); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if len(values) < 3 || textOf(values[0]) == "Note" {
			continue // what an EXPLAIN or an index has to say, not what may be wrong
		}
		if total++; deprecations[textOf(values[1])] {
			continue
		}
		kind, w := inPlainWords(textOf(values[1]), textOf(values[2]))
		if more[kind]++; more[kind] > 1 {
			continue
		}
		if seen = append(seen, kind); len(list) < maxWarnings {
			list = append(list, w)
		}
	}
	for i := range list {
		if n := more[seen[i]]; total >= s.keptWarnings && n > 1 {
			list[i].Message += fmt.Sprintf(" (%d such warnings or more)", n)
		} else if n > 1 {
			list[i].Message += fmt.Sprintf(" (%d such warnings)", n)
		}
	}
	return list, rows.Close()
}

// textOf is a value of the text protocol, whose columns are bytes or, where the driver parses them, numbers.
func textOf(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// plainWords are warnings as a caller can use them: by number, and by what their text says.
// The first entry whose number and text fit is taken, so that narrow patterns stand before wide ones of the same number.
var plainWords = []struct {
	number string
	says   *regexp.Regexp
	rule   string
	words  string // with the quoted value in place of %s
}{
	{"1292", regexp.MustCompile(`(?i)incorrect (?:datetime|date|timestamp) value: '(\d{4}-\d\d-\d\d[T ][\d:.]+Z)'`), "sql.date",
		"the Z of '%s' was ignored, since the times here have no zone and are UTC: write '2026-01-31 09:00:00'"},
	{"1292", regexp.MustCompile(`(?i)incorrect (?:datetime|date|timestamp) value: '(\d{4}-\d\d-\d\d[T ][\d:.]+[+-]\d\d:?\d\d)'`), "sql.date",
		"the zone of '%s' was ignored, since the times here have none and are UTC: write the time in UTC, '2026-01-31 09:00:00'"},
	{"1292", regexp.MustCompile(`(?i)incorrect (?:time|seconds) value: '(-?(?:839|8[4-9]\d|9\d\d|\d{4,})(?::[\d:.]+)?)'`), "sql.time",
		"the time '%s' was cut, since TIME ends at 838:59:59: count with TIMESTAMPDIFF(SECOND, from, to)"},
	{"1292", regexp.MustCompile(`(?i)incorrect (?:N?CHAR|BINARY)\(\d+\) value: '(.*?)'`), "sql.cut",
		"the value '%s' was cut to the length that CAST was given: give it more, or none"},
	{"1292", regexp.MustCompile(`(?i)incorrect (?:time|INTERVAL DAY TO SECOND) value: '(.*?)'`), "sql.time",
		"the text '%s' is no time of a day: write TIMESTAMPDIFF(SECOND, from, to) for the time between two moments, and a moment as " +
			"'2026-01-02 00:00:00' for TIME and HOUR"},
	{"1292", regexp.MustCompile(`(?i)(?:incorrect|truncated incorrect) (?:datetime|date|timestamp) value: '(.*?)'`), "sql.date",
		"the text '%s' is no date, and is not compared as one: write '2026-01-31' or '2026-01-31 09:00:00', or STR_TO_DATE(text, format)"},
	{"1292", regexp.MustCompile(`(?i)truncated incorrect .*? value: '(.*?)'`), "sql.number",
		"the text '%s' was read as a number, and most texts read as 0: compare text with text in quotes, or CAST it where it is a number"},
	{"1365", regexp.MustCompile(`(.*)`), "sql.division", "a division by 0 answers NULL: write x / NULLIF(y, 0) to say so"},
	{"1260", regexp.MustCompile(`(.*)`), "sql.group_concat",
		"GROUP_CONCAT was cut at group_concat_max_len: concatenate fewer or shorter values"},
	{"1411", regexp.MustCompile(`(?i)value: '(.*?)' for function str_to_date`), "sql.date",
		"the text '%s' is not of the format that STR_TO_DATE was given; it answers NULL"},
	{"1411", regexp.MustCompile(`(?i)value: ''?(.*?)'?' for function unhex`), "sql.hex",
		"the text '%s' is not hexadecimal; UNHEX answers NULL"},
	{"1441", regexp.MustCompile(`(.*)`), "sql.date", "a date left the years 1 to 9999 and is NULL"},
	{"1300", regexp.MustCompile(`(?i)cannot convert string '(.*?)' from utf8mb4 to utf8mb3`), "sql.character",
		"'%s' has a character that names, and columns of utf8mb3, cannot have, such as an emoji, and ? stands for it: write it without that"},
	{"1301", regexp.MustCompile(`(.*)`), "sql.size", "a value would be larger than max_allowed_packet and is NULL: make it shorter"},
	{"4038", regexp.MustCompile(`(.*)`), "sql.json",
		"a text is no JSON, and the JSON function answers NULL for it: filter with JSON_VALID(col)"},
	{"4037", regexp.MustCompile(`(.*)`), "sql.json",
		"a text is no whole JSON, and the JSON function answers NULL for it: filter with JSON_VALID(col)"},
}

// escapedBytes is a run of bytes as servers write those that a connection's character set cannot show.
var escapedBytes = regexp.MustCompile(`(?:\\x[0-9A-F]{2})+`)

// unescaped is a value as it was written, of which a server shows the bytes beyond ASCII as \xEB; what it has cut is left out.
func unescaped(value string) string {
	return strings.ToValidUTF8(escapedBytes.ReplaceAllStringFunc(value, func(bytes string) string {
		plain, err := strconv.Unquote(`"` + bytes + `"`)
		if err != nil {
			return bytes
		}
		return plain
	}), "")
}

// inPlainWords is a warning as a caller can use it, and the kind of it: warnings of one kind are told once.
// What no entry knows is told in the server's words, cut to 200 characters and without the account's name.
func inPlainWords(number, message string) (kind string, w tool.Warning) {
	for _, p := range plainWords {
		if p.number != number {
			continue
		}
		if m := p.says.FindStringSubmatch(message); m != nil {
			words := p.words
			if strings.Contains(words, "%s") {
				words = fmt.Sprintf(words, text.Shorten(unescaped(m[1]), 60))
			}
			return p.rule, tool.Warning{Rule: p.rule, Message: words}
		}
	}
	return number, tool.Warning{Rule: "sql.server", Message: "the server warns (" + number + "): " +
		text.Shorten(account.ReplaceAllString(message, "to Hub"), 200)}
}

// namedTexts warns of texts in double quotes that are names of columns.
// It is told of SELECT "brand_name" FROM brand, and not of a text that is no column: quoted has what the guard took for a
// name.
func (r *Reader) namedTexts(ctx context.Context, quoted []string) (list []tool.Warning) {
	if len(quoted) == 0 {
		return nil
	}
	n := r.known(ctx)
	var told []string
	for _, q := range quoted {
		_, column, dotted := strings.Cut(q, ".")
		if !dotted {
			column = q
		}
		name := n.column(column)
		if name == "" || slices.Contains(told, name) || len(list) == maxWarnings {
			continue
		}
		told = append(told, name)
		list = append(list, tool.Warning{Rule: "sql.quotes", Message: fmt.Sprintf(
			"%q in double quotes is a text here, not the column %s: write %s without quotes, or in `backquotes`", q, name, name)})
	}
	return list
}
