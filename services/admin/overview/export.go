package overview

import (
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

const (
	exportPath = logPath + "/export"
	// exportLimit is how many rows one export has: what the edge lets a page take its time for is a minute.
	exportLimit = 200_000
	// flushEvery is after how many rows what there is goes out.
	flushEvery = 1000
)

var exportColumns = []string{"at", "id", "request_id", "trace_id", "tool", "outcome", "count", "took_ms", "service", "caller",
	"person", "writer", "input_hash", "detail"}

// export streams what was looked for as CSV. Who has asked for what is in the log before the first byte.
func (o *Overview) export(w http.ResponseWriter, r *http.Request) error {
	now := o.c.Now()
	f := filterOf(r.URL.Query(), now)
	if f.Wrong {
		return fault.New(fault.Validation, "From and to have to be times such as 2026-01-31 09:30, in UTC.")
	}
	if err := o.c.Records.Write(r.Context(), o.entry(r.Context(), "audit.export", 0, f.detail())); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="audit-%s.csv"`, now.UTC().Format("20060102-150405")))
	out, rows := csv.NewWriter(w), 0
	flush := func() error {
		out.Flush()
		if err := out.Error(); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	err := out.Write(exportColumns)
	if err == nil {
		err = o.rows(r, f, out, &rows, flush)
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		if rows == 0 && r.Context().Err() == nil {
			h.Del("Content-Disposition")
			return err // nothing has left yet
		}
		panic(http.ErrAbortHandler) // a file that ends early must not look whole
	}
	return nil
}

func (o *Overview) rows(r *http.Request, f filter, out *csv.Writer, n *int, flush func() error) error {
	next, more, err := o.c.Log.Export(r.Context(), f.Filter, exportLimit, func(c audit.Call) error {
		if *n++; *n%flushEvery == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		return out.Write(record(c))
	})
	if err != nil || !more {
		return err
	}
	return out.Write([]string{fmt.Sprintf("NOT COMPLETE: an export has at most %d rows. Export what is older with to=%s.", exportLimit,
		next.At.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339))})
}

func record(c audit.Call) []string {
	cells := []string{c.At.UTC().Format(exactly), c.ID, c.RequestID, c.TraceID, c.Tool, c.Outcome, strconv.Itoa(c.Count),
		strconv.Itoa(c.TookMS), c.Service, c.CredentialID, c.ExternalUserID, c.Writer, hex.EncodeToString(c.InputHash), c.Detail}
	for i := range cells {
		cells[i] = cell(cells[i])
	}
	return cells
}

// cell keeps a spreadsheet from taking text that others wrote for a formula.
func cell(text string) string {
	// Some drop what nobody sees before they look.
	start := strings.TrimLeftFunc(text, func(r rune) bool { return !schema.Visible(r) && !strings.ContainsRune("\t\r\n", r) })
	if first, _ := utf8.DecodeRuneInString(start); strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) && start != "" {
		return "'" + text
	}
	return text
}
