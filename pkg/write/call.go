package write

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
)

// Call is a call of a write tool on its way to the store: its key, and what its audit row says.
type Call struct {
	Key    Key
	Caller caller.Caller
	// At is the moment that is stored, in whole milliseconds UTC: what is answered is what can be
	// read back.
	At time.Time
	// InputHash is the audit log's.
	InputHash []byte

	started time.Time
}

// NewCall returns the call that ctx belongs to, with now as its moment. Its key is the credential's,
// apart from its keys for other operations.
func NewCall(ctx context.Context, operation string, now time.Time) (Call, error) {
	sent, c := tool.IdempotencyFrom(ctx), caller.From(ctx)
	fingerprint, err := Fingerprint(sent.Input)
	return Call{
		Key:    Key{Principal: c.CredentialID, Operation: operation, Key: sent.Key, Fingerprint: fingerprint},
		Caller: c, At: now.UTC().Truncate(time.Millisecond), InputHash: audit.HashInput(sent.Input), started: time.Now(),
	}, err
}

// Entry is the audit row of the call's success.
func (c Call) Entry(count int, detail any) audit.Entry {
	return audit.Entry{At: c.At, Caller: c.Caller, Tool: c.Key.Operation, Outcome: audit.OK, Count: count,
		Took: time.Since(c.started), InputHash: c.InputHash, Detail: detail}
}

// Answer makes the stored answer of data, which counts count rows: 200, a tool's success.
func Answer(data any, count int) (tool.Result, error) { return AnswerAs(http.StatusOK, data, count) }

// AnswerAs is Answer with the status of a route's success, such as 201, which a replay has as well.
func AnswerAs(status int, data any, count int) (tool.Result, error) {
	b, err := json.Marshal(data)
	if err != nil {
		return tool.Result{}, fmt.Errorf("encode answer: %w", err)
	}
	return tool.Result{Head: tool.Head{Status: status, Count: count}, Data: b}, nil
}
