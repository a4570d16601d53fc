package overview

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/services/admin/auditlog"
)

const (
	exportPath = logPath + "/export"
	// exportLimit is how many rows one export has: what the edge lets a page take its time for is a minute.
	exportLimit = 200_000
)

var exportColumns = []string{"at", "id", "request_id", "trace_id", "tool", "outcome", "count", "took_ms", "service", "caller",
	"person", "writer", "input_hash", "detail", "foreign"}

// export streams what was looked for as CSV. Who has asked for what is in the log before the first byte.
func (o *Overview) export(w http.ResponseWriter, r *http.Request) error {
	now := o.c.Now()
	f := filterOf(r.Context(), r.URL.Query(), now, o.c.Owners)
	if f.Wrong {
		return fault.New(fault.Validation, "From and to have to be times such as 2026-01-31 09:30, in UTC or in the zone of the address.")
	}
	if err := o.c.Records.Write(r.Context(), o.entry(r.Context(), "audit.export", 0, f.Detail())); err != nil {
		return err
	}
	return web.Export(w, r, "audit-"+now.UTC().Format("20060102-150405"), exportColumns, func(row func(cells ...string) error) error {
		next, more, err := o.c.Log.Export(r.Context(), f.Filter, exportLimit, func(c auditlog.Call) error { return row(o.record(c)...) })
		if err != nil || !more {
			return err
		}
		return row(fmt.Sprintf("NOT COMPLETE: an export has at most %d rows. Export what is older with to=%s.", exportLimit,
			next.At.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)))
	})
}

// record is a row of the log as CSV has it.
func (o *Overview) record(c auditlog.Call) []string {
	mark := ""
	if o.c.Owners.Foreign(c) {
		mark = foreign(c.Writer)
	}
	return []string{c.At.UTC().Format(momentLayout), c.ID, c.RequestID, c.TraceID, c.Tool, c.Outcome, strconv.Itoa(c.Count),
		strconv.Itoa(c.TookMS), c.Service, c.CredentialID, c.ExternalUserID, c.Writer, hex.EncodeToString(c.InputHash), c.Detail, mark}
}
