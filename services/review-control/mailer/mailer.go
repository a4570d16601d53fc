// Package mailer is what those who decide and those who hand over agree on: a mail as it leaves, its hash, how a hand-over
// can fail, and when it is tried again. It knows no review and no protocol.
package mailer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"
)

// Content is what a recipient reads, as it is handed over to the mail server before it is
// encoded (RFC 2045). The address to unsubscribe at is no part of it: that is made when the
// mail was approved, and stands in a header alone.
type Content struct {
	// From is whom the recipient sees the mail come from. Sender is Hub's own mailbox: the
	// envelope's return path, and the header Sender where From is another.
	From, Sender, To Address
	Subject          string
	// HTML is a whole document, empty for a mail of plain text. Text is always there. Lines end
	// with CRLF.
	HTML, Text string
}

// contentVersion names what Hash is taken over.
const contentVersion = "hub mail 2"

// Hash is what a decision is bound to: SHA-256 over all of the content, each part behind its
// length, so that no two contents share one. It is in hexadecimal.
func (c Content) Hash() string {
	h := sha256.New()
	for _, part := range []string{
		contentVersion, c.From.Name, c.From.Email, c.Sender.Name, c.Sender.Email, c.To.Name, c.To.Email, c.Subject, c.HTML, c.Text,
	} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Address is a mailbox with the name to show.
type Address struct{ Name, Email string }

// Message is a mail as it leaves.
type Message struct {
	Content
	// ID is the Message-ID without its angle brackets.
	ID   string
	Date time.Time
	// Unsubscribe is the one-click address of RFC 8058.
	Unsubscribe string
}

// Verdict says what a failed hand-over means for the mail.
type Verdict string

// The verdicts.
const (
	// Later: the mail was certainly not taken, and may be tried again (4xx, no connection).
	Later Verdict = "later"
	// Never: the mail was refused for good (5xx).
	Never Verdict = "never"
	// Perhaps: the connection broke when the mail was handed over whole, and before the answer.
	Perhaps Verdict = "perhaps"
)

// SendError is why a mail was not, or perhaps not, taken.
type SendError struct {
	Verdict Verdict
	// Reason is the server's answer or what broke, in one line for people.
	Reason string
	Cause  error
}

// Error implements error.
func (e *SendError) Error() string { return fmt.Sprintf("%s (%s)", e.Reason, e.Verdict) }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Cause }

// Pace is how mails are tried again.
type Pace struct {
	// Retry is the wait after the first failure; it doubles up to an hour.
	Retry time.Duration
	// GiveUp is how long after its first try a mail is given up.
	GiveUp time.Duration
}

const (
	// longestWait bounds the wait for another try, and reachWait the one when the server
	// could not be reached: that says nothing about the recipient.
	longestWait = time.Hour
	reachWait   = 5 * time.Minute
)

// Wait is the time to the next try of a mail that was put off so many times.
func (p Pace) Wait(delays int, reached bool) time.Duration {
	longest := longestWait
	if !reached {
		longest = reachWait
	}
	wait := min(p.Retry, longest)
	for range min(delays-1, 30) {
		wait = min(2*wait, longest)
	}
	return wait
}

// Jitter spreads a wait by a fifth to each side.
func Jitter(wait time.Duration) time.Duration {
	if wait < 10 {
		return wait
	}
	return wait - wait/5 + rand.N(2*wait/5)
}
