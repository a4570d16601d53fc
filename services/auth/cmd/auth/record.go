package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/pkg/schema"
	"hub.internal/services/auth"
)

// record is a key as --json prints it.
type record struct {
	// Key is the key itself, where it has just been issued.
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

func newRecord(k auth.Key) record {
	stamp := func(t *time.Time) *string {
		if t == nil {
			return nil
		}
		return new(schema.Moment(*t))
	}
	some := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return record{ID: k.ID, Name: k.Name, Service: k.Service, Hint: hint(k), Status: k.Status(time.Now()), Scopes: k.Scopes, Limits: k.Limits,
		CreatedBy: k.CreatedBy, CreatedAt: stamp(&k.CreatedAt), ExpiresAt: stamp(k.ExpiresAt),
		RevokedAt: stamp(k.RevokedAt), RevokeReason: some(k.RevokeReason),
		RotatedFrom: some(k.RotatedFrom), RotatedTo: some(k.RotatedTo), LastUsedAt: stamp(k.LastUsedAt), PepperID: k.PepperID}
}

func printJSON(cmd *cobra.Command, v any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printKey(out io.Writer, k auth.Key, chain []string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	revoked := ""
	if k.RevokedAt != nil {
		revoked = moment(k.RevokedAt) + ": " + k.RevokeReason
	}
	for _, f := range [][2]string{
		{"id", k.ID}, {"name", k.Name}, {"key", hint(k)}, {"status", string(k.Status(time.Now()))},
		{"service", k.Service}, {"scopes", strings.Join(k.Scopes, ", ")},
		{"limits", fmt.Sprintf("user %d a minute, burst %d; service %d a minute, burst %d",
			k.Limits.UserPerMinute, k.Limits.UserBurst, k.Limits.ServicePerMinute, k.Limits.ServiceBurst)},
		{"created", moment(&k.CreatedAt) + " by " + k.CreatedBy}, {"expires", moment(k.ExpiresAt)}, {"revoked", cmp.Or(revoked, "-")},
		{"last used", moment(k.LastUsedAt)}, {"pepper", k.PepperID}, {"rotations", strings.Join(chain, " → ")},
	} {
		fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
	}
	_ = w.Flush() // like the print before it: a terminal that is gone gets no answer
}

func printSecret(out io.Writer, s auth.Secret) {
	fmt.Fprintf(out, "\n%s\n\nKeep it now: it is not shown again.\n", s.Reveal())
}

func hint(k auth.Key) string { return k.Head + "…" + k.Tail }

func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}
