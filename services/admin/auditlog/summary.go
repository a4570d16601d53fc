package auditlog

import "time"

// Range is how far back a summary goes, in the steps of its plots.
type Range struct {
	// Name is short: 24h. Text is for people.
	Name, Text string
	// Steps is how many whole ones there are beside the one that runs.
	Steps int
	Step  time.Duration
}

// Ranges are those that there are.
func Ranges() []Range {
	const day = 24 * time.Hour
	// A range has 12 to 52 steps, which a plot has the width for.
	return []Range{
		{"1h", "1 hour", 12, 5 * time.Minute},
		{"24h", "24 hours", 24, time.Hour},
		{"7d", "7 days", 28, 6 * time.Hour},
		{"30d", "30 days", 30, day},
		{"365d", "1 year", 52, 7 * day},
	}
}

// Origin is a Monday that steps of any length are whole multiples away from; the periods of the roll-ups begin there too.
func Origin() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }

// At is the range that ends with a moment: from the begin of its first step.
func (r Range) At(now time.Time) (from time.Time) {
	origin := Origin()
	steps := int64(now.Sub(origin) / r.Step)
	if now.Before(origin) {
		steps--
	}
	return origin.Add(time.Duration(steps-int64(r.Steps)) * r.Step)
}

// Summary is what the log says about the calls of tools in a range. What people did in the console is not in it.
type Summary struct {
	// From is the begin of the first step, To the moment of the summary.
	From, To time.Time
	Total    Figures
	// Points are the steps of the range, each there.
	Points []Point
	// Tools are the ten most called, Errors all codes by their number, up to a hundred. Callers are those who called most and
	// those who were limited most, ten each.
	Tools   []Tool
	Errors  []Count
	Callers []Caller
	Limited []Caller
	// MissingFrom and MissingTo bound what is not rolled up yet; both are zero when all is.
	MissingFrom, MissingTo time.Time
}

// Figures are about some calls.
type Figures struct {
	Calls, Failed int64
	// P50 and P95 are the times in milliseconds that half, and 95 of 100, of the calls kept, within the bounds of a bucket; of
	// calls that a service worked on, not of those that were refused. Measured is how many these are.
	P50, P95 float64
	Measured int64
}

// Point is a step of a range.
type Point struct {
	At time.Time
	Figures
}

// Tool is a tool's part. Name is empty for all that are too many to be told apart.
type Tool struct {
	Name string
	Figures
}

// Count is how many calls ended with an error code.
type Count struct {
	// Code is one of pkg/fault's, or one that a service has made up.
	Code  string
	Calls int64
}

// Caller is a credential's part; an empty CredentialID is whoever had none, and all that are too many to be told apart.
type Caller struct {
	// CredentialID is that of an API key, an app or a session.
	CredentialID string
	// Failed are all that did not end with OK, Limited those of them that a rate limit refused.
	Calls, Failed, Limited int64
}
