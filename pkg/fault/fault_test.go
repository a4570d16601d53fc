package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
)

// TestCodesMatchTheContract pins the table of CONTRACT.md 2.3.
func TestCodesMatchTheContract(t *testing.T) {
	want := map[fault.Code]int{
		"E_VALIDATION": 400, "E_AUTH_MISSING": 401, "E_AUTH_INVALID": 401, "E_AUTH_EXPIRED": 403, "E_AUTH_REVOKED": 403,
		"E_SCOPE": 403, "E_NOT_FOUND": 404, "E_CONFLICT": 409, "E_IDEMPOTENCY": 409, "E_SUPPRESSED": 422, "E_RATE_LIMIT": 429,
		"E_DB_TIMEOUT": 504, "E_DB": 503, "E_INTERNAL": 500, "BAD_AMOUNT": 400, "ACCOUNT_LINK_REQUIRED": 401,
	}
	got := fault.Codes()
	if len(got) != len(want) {
		t.Errorf("%d codes, want %d", len(got), len(want))
	}
	for code, status := range want {
		if got[code] != status {
			t.Errorf("%s: status %d, want %d", code, got[code], status)
		}
	}
}

func TestForeignErrorTellsNothing(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.7:3306: SELECT secret FROM t")
	f := fault.From(fmt.Errorf("store: %w", cause))
	if f.Code != fault.Internal || f.Status() != 500 || f.Retryable() {
		t.Fatalf("got %+v", f)
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "10.0.0.7") || strings.Contains(string(b), "SELECT") {
		t.Errorf("the wire form leaks the cause: %s", b)
	}
	if !errors.Is(f, cause) || !strings.Contains(f.Error(), "10.0.0.7") {
		t.Error("the cause is lost to the log")
	}
}

func TestFaultSurvivesTheHop(t *testing.T) {
	sent := fault.New(
		fault.RateLimit,
		"slow down",
	).With(
		map[string]any{"retryAfter": 2},
	).After(
		1500 * time.Millisecond,
	).Because(
		errors.New("hidden"),
	)
	b, err := json.Marshal(fmt.Errorf("wrapped: %w", sent).(interface{ Unwrap() error }).Unwrap())
	if err != nil {
		t.Fatal(err)
	}
	var got fault.Error
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Code != sent.Code || got.Message != sent.Message || got.RetryAfter != sent.RetryAfter || !got.Retryable() {
		t.Errorf("got %+v, want %+v", got, sent)
	}
	details, _ := json.Marshal(got.Details)
	if string(details) != `{"retryAfter":2}` {
		t.Errorf("details %s", details)
	}
	for _, text := range []string{`{"code":"","message":"x"}`, `{"message":"x"}`, `{"code":"e new","message":"x"}`, `{"code":"` +
		strings.Repeat("E", 65) + `"}`, `[]`} {
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s passed as %+v", text, got)
		}
	}
}

// TestACodeOfALaterRelease keeps all that it came with, and means what the answer's status means.
func TestACodeOfALaterRelease(t *testing.T) {
	for status, retryable := range map[int]bool{400: false, 404: false, 409: false, 429: true, 500: false, 503: true, 504: true} {
		var got fault.Error
		if err := json.Unmarshal([]byte(`{"code":"E_NEW","message":"It is new.","details":{"a":1}}`), &got); err != nil {
			t.Fatal(err)
		}
		f := got.Answered(status)
		details, _ := json.Marshal(f.Details)
		if f.Code != "E_NEW" || f.Message != "It is new." || string(details) != `{"a":1}` || f.Status() != status ||
			f.Retryable() != retryable {
			t.Errorf("%d: %+v has the status %d, retryable %t", status, f, f.Status(), f.Retryable())
		}
		if got.Status() != 500 || got.Retryable() {
			t.Errorf("without an answer: %d, %t", got.Status(), got.Retryable())
		}
	}
	if f := fault.New(fault.Conflict, "x").Answered(503); f.Status() != 409 || f.Retryable() {
		t.Errorf("a code that is known has the status %d of an answer", f.Status())
	}
}

func TestALogLineHoldsTheCause(t *testing.T) {
	var log strings.Builder
	slog.New(
		slog.NewJSONHandler(&log, nil),
	).Info(
		"x",
		"error",
		error(fault.New(fault.DB, "Try again.").Because(errors.New("dial tcp 10.0.0.7"))),
	)
	if !strings.Contains(log.String(), `"error":"E_DB: Try again.: dial tcp 10.0.0.7"`) {
		t.Error(log.String())
	}
}

// TestWhatFailsAgainSaysSo: also after a hop, and beside what other failures of its code are.
func TestWhatFailsAgainSaysSo(t *testing.T) {
	usual := fault.New(fault.DBTimeout, "It took too long.")
	b, err := json.Marshal(usual.Final().With(map[string]int{"timeout_ms": 1}))
	if err != nil {
		t.Fatal(err)
	}
	var arrived fault.Error
	if err := json.Unmarshal(b, &arrived); err != nil || arrived.Retryable() || arrived.Status() != 504 || !usual.Retryable() {
		t.Errorf("%v: %s", err, b)
	}
}

func TestADeadlineThatPassedMayBeTriedAgain(t *testing.T) {
	f := fault.From(fmt.Errorf("store: %w", context.DeadlineExceeded))
	if f.Code != fault.DB || !f.Retryable() || !errors.Is(f, context.DeadlineExceeded) {
		t.Errorf("got %+v", f)
	}
	if f := fault.From(context.Canceled); f.Code != fault.Internal {
		t.Errorf("a caller that went away: %+v", f)
	}
}

// TestShedTravels: that a call was shed is known beyond a hop, and no other refusal of a limit is taken for it.
func TestShedTravels(t *testing.T) {
	for f, want := range map[*fault.Error]bool{
		fault.Full("full"):                 true,
		fault.New(fault.RateLimit, "much"): false,
		fault.New(fault.RateLimit, "much").With(map[string]any{"scope": "user"}):     false,
		fault.New(fault.Conflict, "other").With(map[string]any{"scope": "capacity"}): false,
	} {
		b, err := json.Marshal(f)
		var read fault.Error
		if err == nil {
			err = json.Unmarshal(b, &read)
		}
		if err != nil || fault.Shed(f) != want || fault.Shed(&read) != want || read.Retryable() != f.Retryable() {
			t.Errorf("%s: %v", b, err)
		}
	}
}
