// Package audit is the append-only log of calls: who called what, with which
// outcome. A row joins the transaction of its effect (Append), is awaited before an
// answer leaves (Log.Write), is queued and kept while the store is away (Log.Queue), or is counted with others (Tally). The package
// reads nothing: the log's one reader is the service admin. Nor does it change or delete rows: no
// service's role may do that, and triggers hold the owner to it; whole months go when the owner's
// policy says so.
package audit

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the audit schema up to date, and makes the coming year's months. Each service's migrate calls it first.
func Migrate(ctx context.Context, ownerURL string) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, ownerURL, "audit", files); err != nil {
		return err
	}
	return postgres.ExecAsOwner(ctx, ownerURL, "months of the audit log", `SELECT audit.extend()`)
}

// Tables is the step of the audit schema: the first one of each service.
func Tables(ctx context.Context, ownerURL, _ string) error { return Migrate(ctx, ownerURL) }

// OK is the outcome of a call that succeeded; other outcomes are error codes.
const OK = "ok"

// Entry is one row of audit.calls.
type Entry struct {
	At        time.Time
	Caller    caller.Caller
	Tool      string
	Outcome   string
	Count     int
	Took      time.Duration
	InputHash []byte
	// TraceID is the hexadecimal id of the trace that the call belongs to. Append and Write take it from
	// their context where it is empty; what is queued has none but this.
	TraceID string
	// Detail is marshalled as JSON; nil stores NULL.
	Detail any
}

// TraceID is what Entry.TraceID holds; empty without a trace.
func TraceID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		return s.TraceID().String()
	}
	return ""
}

// in is the entry with the trace of ctx.
func (e Entry) in(ctx context.Context) Entry {
	e.TraceID = cmp.Or(e.TraceID, TraceID(ctx))
	return e
}

// Outcome is OK for nil, else the error's code.
func Outcome(err error) string {
	if err == nil {
		return OK
	}
	return string(fault.From(err).Code)
}

// HashInput is what Entry.InputHash holds: SHA-256 of the input's bytes.
func HashInput(input []byte) []byte {
	sum := sha256.Sum256(input)
	return sum[:]
}

// row is an Entry in the types of its columns.
type row struct {
	// id makes writing the row again harmless: drawn once, whatever becomes of the first try.
	id                                                          [16]byte
	at                                                          time.Time
	requestID, service, externalUser, credential, tool, outcome string
	count, tookMS                                               int32
	inputHash                                                   []byte
	detail                                                      *string
	traceID                                                     string
}

// row is the entry in the types of its columns. It fails for a detail that is no JSON.
func (e Entry) row() (row, error) {
	r := row{id: newID(), at: e.At, requestID: Stored(e.Caller.RequestID), service: Stored(e.Caller.Service),
		externalUser: Stored(e.Caller.ExternalUserID), credential: Stored(e.Caller.CredentialID), tool: Stored(e.Tool),
		outcome: e.Outcome, count: clamp(int64(e.Count)), tookMS: clamp(e.Took.Milliseconds()), inputHash: e.InputHash,
		traceID: Stored(e.TraceID)}
	if e.Detail != nil {
		b, err := json.Marshal(e.Detail)
		if err != nil {
			return row{}, fmt.Errorf("audit detail of %s: %w", e.Tool, err)
		}
		text := withoutNull(string(b))
		r.detail = &text
	}
	return r, nil
}

// newID draws an id of the kind that the store draws for a row without one: a random UUID.
func newID() (id [16]byte) {
	_, _ = rand.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// bytes is about what the row takes in memory.
func (r *row) bytes() int {
	n := 400 + len(r.requestID) + len(r.service) + len(r.externalUser) + len(r.credential) + len(r.tool) + len(r.outcome) + len(r.inputHash) +
		len(r.traceID)
	if r.detail != nil {
		n += len(*r.detail)
	}
	return n
}

// withoutNull replaces the escape of NUL, which jsonb cannot hold, in JSON text.
func withoutNull(text string) string {
	const null = `\u0000`
	if !strings.Contains(text, null) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], null):
			b.WriteString(`\ufffd`)
			i += len(null) - 1
		case text[i] == '\\':
			b.WriteString(text[i : i+2])
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// Stored returns a caller's text as a text column of the log holds it: valid UTF-8 without NUL, at most 300 bytes.
func Stored(s string) string {
	const longest = 300
	return text.HeadBytes(text.Storable(s), longest)
}

// clamp is a number as a column of 32 bits holds it, never below 0.
func clamp(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// insert is followed by where the rows are from. A row has the time of its entry; but, by the store's own clock, it is
// not in the future and not further in the past than the store takes (five minutes, of which one is for the way): a process
// whose clock is wrong, and a row that waited for a store that was away, are recorded all the same.
//
// The id makes it once: a row that is there already, with its time, is left alone. (The time changes with the clock of the store
// for a row that waited longer than four minutes, or whose process is ahead of it by more than it waited: such a row, written
// again after a try whose end nobody saw, may be there twice, with one id.)
const insert = `INSERT INTO audit.calls
	(id, at, request_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, input_hash, detail, trace_id)
	SELECT id, greatest(least(at, clock_timestamp()), clock_timestamp() - interval '4 minutes'),
		request_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, input_hash, detail, trace_id FROM `

// as names what insert selects.
const as = ` AS r (id, at, request_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, input_hash, detail,
	trace_id) ON CONFLICT DO NOTHING`

// Append adds a row in the transaction of the effect that it records; to a postgres.Tx with the next statement.
func Append(ctx context.Context, tx postgres.Querier, e Entry) error {
	r, err := e.in(ctx).row()
	if err != nil {
		return err
	}
	const values = `(VALUES ($1::uuid, $2::timestamptz, $3, $4, $5, $6, $7, $8, $9::int, $10::int, $11::bytea, $12::jsonb, $13))`
	return postgres.Later(ctx, tx, insert+values+as, r.id, r.at, r.requestID, r.service, r.externalUser, r.credential, r.tool, r.outcome,
		r.count, r.tookMS, r.inputHash, r.detail, r.traceID)
}
