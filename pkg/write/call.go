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
	// Operation is the tool or the route, as the audit log names it.
	Operation string
	// At is the moment that is stored, in whole milliseconds UTC: what is answered is what can be
	// read back.
	At time.Time
	// InputHash is the audit log's.
	InputHash []byte

	started time.Time
}

// NewCall returns the call that ctx belongs to, with now as its moment. Its key is the credential's,
// apart from its keys for other operations. For a caller who has sent none it stands for the external user and the input, and holds
// for derivedFor.
func NewCall(ctx context.Context, operation string, now time.Time) (Call, error) {
	call := newCall(ctx, operation, now)
	call.Key.Operation = operation
	var err error
	sent := tool.IdempotencyFrom(ctx)
	if call.Key.Fingerprint, err = Fingerprint(ctx, sent.Input); err == nil && sent.Derive {
		call.Key.Key = derived(call.Caller.ExternalUserID, call.Key.Fingerprint)
	}
	return call, err
}

// NewRouteCall returns the call of a route below /v1 that ctx belongs to (SPEC.md 7.1): its key is one for all routes of
// the caller, and stands for the method, the path as declared, the caller's external user and in, the decoded input with its
// defaults, which is compared as its JSON: what that leaves out makes no difference. The key may be empty.
func NewRouteCall(ctx context.Context, operation, method, path string, in any, now time.Time) (Call, error) {
	call := newCall(ctx, operation, now)
	whole, err := json.Marshal([]any{method, path, call.Caller.ExternalUserID, in})
	if err != nil {
		return call, fmt.Errorf("encode input: %w", err)
	}
	call.Key.Fingerprint, err = Fingerprint(ctx, whole)
	return call, err
}

// newCall is what both kinds of call have in common, but for the fingerprint.
func newCall(ctx context.Context, operation string, now time.Time) Call {
	sent, c := tool.IdempotencyFrom(ctx), caller.From(ctx)
	return Call{Key: Key{Principal: c.CredentialID, Key: sent.Key}, Caller: c, Operation: operation,
		At: now.UTC().Truncate(time.Millisecond), InputHash: audit.HashInput(sent.Input), started: time.Now()}
}

// Entry is the audit row of the call's success. It took no time when it was not made by NewCall: somebody else ends it.
func (c Call) Entry(count int, detail any) audit.Entry {
	if c.started.IsZero() {
		c.started = time.Now()
	}
	return audit.Entry{At: c.At, Caller: c.Caller, Tool: c.Operation, Outcome: audit.OK, Count: count,
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
