// Package repeat tells whether a mail is one too many: its recipient has had, or is about to have, another one, or the very same text,
// or a reviewer has rejected that text for them. It knows no store; what there was is told to it.
package repeat

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// Kind is what two mails have in common.
type Kind int

// The kinds, the gravest first.
const (
	// SameText: the address, the texts and the values that they are made of.
	SameText Kind = 1 + iota
	// SameAddress: the address without regard to case.
	SameAddress
	// SamePartner: the partner alone.
	SamePartner
)

// Target is a target of a draft.
type Target struct {
	Partner int64
	Email   string
	// Text is the hash of its texts; nil when it is not known.
	Text *int64
}

// Mail is an earlier mail: that to a target of a draft.
type Mail struct {
	// Place is that of the target which repeats it, in the question.
	Place int
	Kind  Kind
	Draft int64
	// Position is the index of the earlier target in its draft.
	Position int
	Status   string
	// At is when the draft came into its status.
	At time.Time
	// Rejected tells that a reviewer has rejected it, for the Reason; empty where none is known.
	Rejected bool
	Reason   string
}

// rejected is the status of a draft of which no mail leaves, sent that of one whose mails have left.
const rejected, sent = "rejected", "sent"

// Gravest chooses one of the earlier mails for each target. reasons are those of mails that are known to be rejected, by draft and
// position: those are nobody's burden, but for their text.
func Gravest(mails []Mail, reasons map[int64]map[int]string) map[int]Mail {
	chosen := map[int]Mail{}
	for _, m := range mails {
		reason, is := reasons[m.Draft][m.Position]
		m.Rejected, m.Reason = is || m.Status == rejected, reason
		if m.Rejected && m.Kind != SameText {
			continue
		}
		if before, found := chosen[m.Place]; !found || m.Kind < before.Kind || m.Kind == before.Kind && m.Rejected && !before.Rejected {
			chosen[m.Place] = m
		}
	}
	return chosen
}

// Says is what there was, as a part of a sentence that begins with the recipient.
func (m Mail) Says(now time.Time) string {
	what := map[Kind]string{SameText: "the same text", SameAddress: "a mail", SamePartner: "a mail to the partner"}[m.Kind]
	switch {
	case m.Rejected && m.Reason != "":
		return fmt.Sprintf("the same text was rejected in draft %d as %s", m.Draft, m.Reason)
	case m.Rejected:
		return fmt.Sprintf("the same text was rejected in draft %d", m.Draft)
	case m.Status == sent:
		return fmt.Sprintf("%s left with draft %d %s", what, m.Draft, ago(now.Sub(m.At)))
	}
	return fmt.Sprintf("%s is in draft %d, which is about to leave (%s)", what, m.Draft, m.Status)
}

// ago is a time in whole days.
func ago(d time.Duration) string {
	switch days := int(d / (24 * time.Hour)); days {
	case 0:
		return "today"
	case 1:
		return "a day ago"
	default:
		return fmt.Sprintf("%d days ago", days)
	}
}

// Hasher makes the hashes of a draft's targets.
type Hasher struct{ subject, body [sha256.Size]byte }

// NewHasher hashes the templates once.
func NewHasher(subject, body string) Hasher {
	return Hasher{sha256.Sum256([]byte(subject)), sha256.Sum256([]byte(body))}
}

// Sum is the hash of a target's texts: of the templates, or its own where it has some, with the name, the address and the context that
// their values are of. Mails that are rendered alike of other texts have other hashes.
func (h Hasher) Sum(email, name, subject, body string, context []byte) *int64 {
	if subject != "" {
		h.subject = sha256.Sum256([]byte(subject))
	}
	if body != "" {
		h.body = sha256.Sum256([]byte(body))
	}
	sum := sha256.New()
	for _, part := range [][]byte{h.subject[:], h.body[:], []byte(strings.ToLower(email)), []byte(name), context} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		sum.Write(length[:])
		sum.Write(part)
	}
	return new(short([sha256.Size]byte(sum.Sum(nil))))
}

// Address is the hash of an address without regard to case.
func Address(email string) int64 { return short(sha256.Sum256([]byte(strings.ToLower(email)))) }

// short is the part of a hash that is kept. A warning needs no more: among a thousand million of them two are the same by one chance in 40.
func short(sum [sha256.Size]byte) int64 { return int64(binary.BigEndian.Uint64(sum[:8])) }
