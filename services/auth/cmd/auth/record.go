package main

import (
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/services/auth"
)

// record is a key as --json prints it.
// Scripts rely on the names of its members.
type record struct {
	// Key is the key itself, where it has just been issued.
	// omitempty leaves the member out of lists.
	Key          string      `json:"key,omitempty"`
	ID           string      `json:"id"`
	Name         string      `json:"name"`
	Service      string      `json:"service"`
	Hint         string      `json:"hint"`
	Status       auth.Status `json:"status"`
	Scopes       []string    `json:"scopes"`
	Limits       auth.Limits `json:"limits"`
	CreatedBy    string      `json:"created_by"`
	CreatedAt    *string     `json:"created_at"`
	ExpiresAt    *string     `json:"expires_at"`
	RevokedAt    *string     `json:"revoked_at"`
	RevokeReason *string     `json:"revoke_reason"`
	RotatedFrom  *string     `json:"rotated_from"`
	RotatedTo    *string     `json:"rotated_to"`
	LastUsedAt   *string     `json:"last_used_at"`
	PepperID     string      `json:"pepper_id"`
	Chain        []string    `json:"chain,omitempty"`
}

// newRecord is a key without the key itself.
func newRecord(k auth.Key) record {
	return record{ID: k.ID, Name: k.Name, Service: k.Service, Hint: hint(k), Status: k.Status(time.Now()), Scopes: k.Scopes, Limits: k.Limits,
		CreatedBy: k.CreatedBy, CreatedAt: stamp(&k.CreatedAt), ExpiresAt: stamp(k.ExpiresAt),
		RevokedAt: stamp(k.RevokedAt), RevokeReason: orNull(k.RevokeReason),
		RotatedFrom: orNull(k.RotatedFrom), RotatedTo: orNull(k.RotatedTo), LastUsedAt: stamp(k.LastUsedAt), PepperID: k.PepperID}
}

// stamp is a moment as JSON has it, nil for none.
func stamp(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(schema.Moment(*t))
}

// orNull is a text as JSON has it, nil for an empty one.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// shownOnce follows what can be read on the terminal and nowhere else.
const shownOnce = "Keep it now: it is not shown again."

// everyPage returns the entries of all pages of a list.
// A terminal has no pager, so lists are read to their end by keyset pagination: each page begins after the last entry of the one before.
func everyPage[T any](page func(after string) ([]T, string, error)) (all []T, err error) {
	for after := ""; ; {
		some, next, err := page(after)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if after = next; next == "" {
			return all, nil
		}
	}
}

// hint tells keys apart without telling them.
// It has the form of the console, such as crm_AbCd…wXyZ.
func hint(k auth.Key) string { return k.Head + "…" + k.Tail }

// moment is a moment for people, in UTC.
// JSON has RFC 3339 instead (schema.Moment). "-" stands for none.
func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}
