package query

import (
	"context"
	"strings"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
)

// RecipientsPath is where authoring asks whether a draft's targets may be written to.
const RecipientsPath = "/internal/recipients/check"

const (
	// maxRecipients is how many targets one check takes: a whole draft.
	maxRecipients = 10_000
	// recipientsMaxBody holds as many, each with the longest address.
	recipientsMaxBody = 4 << 20
)

// Reason says why Hub may not write to a target.
type Reason string

// The reasons of the specification's rules on recipients.
const (
	// UnknownPartner: the source has no partner of that id.
	UnknownPartner Reason = "unknown_partner"
	// NotAVerifiedContact: the address is not one of that partner's contacts whose address
	// is verified and whose account is READY.
	NotAVerifiedContact Reason = "not_a_verified_contact"
	// B2CMember: the address belongs to a member, and members are never written to.
	B2CMember Reason = "b2c_member"
)

// Recipient is a target to check.
type Recipient struct {
	PartnerID int64  `json:"partner_id"`
	Email     string `json:"email"`
}

// RecipientsRequest asks about a draft's targets.
type RecipientsRequest struct {
	Targets []Recipient `json:"targets"`
}

// RecipientsResponse names the targets that may not be written to, in their order.
type RecipientsResponse struct {
	Targets []RefusedRecipient `json:"targets"`
}

// RefusedRecipient is a target with each reason against it, the gravest first.
type RefusedRecipient struct {
	Index   int      `json:"index"`
	Reasons []Reason `json:"reasons"`
}

// RecipientSource knows partners, their contacts and the members. Its errors are faults.
type RecipientSource interface {
	// KnownPartners are those of the ids that are partners.
	KnownPartners(ctx context.Context, ids []int64) (map[int64]bool, error)
	// ContactAddresses calls yield with each address of these partners that is verified and
	// whose account is READY, as the source writes it.
	ContactAddresses(ctx context.Context, partners []int64, yield func(partner int64, email string)) error
	// MemberAddresses calls yield with each member's address that may be one of emails.
	MemberAddresses(ctx context.Context, emails []string, yield func(email string)) error
}

// Recipients judges whom Hub may write to.
type Recipients struct{ source RecipientSource }

// NewRecipients returns a judge of recipients.
func NewRecipients(source RecipientSource) *Recipients { return &Recipients{source} }

// Operations declares what query does for its neighbours.
func Operations(s *Service, r *Recipients) []hop.Operation {
	return []hop.Operation{
		hop.New(hop.Declaration{Path: RecipientsPath, Takes: caller.Neighbour("authoring"), MaxBody: recipientsMaxBody}, r.Check),
		healthOperation(s),
	}
}

// Check names the targets that may not be written to. Addresses are compared without
// regard to case. It reads the source in a handful of statements, whatever the number of targets.
func (r *Recipients) Check(ctx context.Context, in RecipientsRequest) (RecipientsResponse, error) {
	if len(in.Targets) > maxRecipients {
		return RecipientsResponse{}, fault.New(fault.Validation, "At most %d targets can be checked at once.", maxRecipients)
	}
	var partners []int64
	var emails []string
	asked, written := map[int64]bool{}, map[string]bool{}
	for _, t := range in.Targets {
		if !asked[t.PartnerID] {
			asked[t.PartnerID] = true
			partners = append(partners, t.PartnerID)
		}
		if email := folded(t.Email); !written[email] {
			written[email] = true
			emails = append(emails, t.Email)
		}
	}
	known, err := r.source.KnownPartners(ctx, partners)
	if err != nil {
		return RecipientsResponse{}, err
	}
	contacts := map[Recipient]bool{}
	err = r.source.ContactAddresses(ctx, partners, func(partner int64, email string) {
		if email = folded(email); written[email] {
			contacts[Recipient{partner, email}] = true
		}
	})
	if err != nil {
		return RecipientsResponse{}, err
	}
	members := map[string]bool{}
	if err := r.source.MemberAddresses(ctx, emails, func(email string) { members[folded(email)] = true }); err != nil {
		return RecipientsResponse{}, err
	}
	out := RecipientsResponse{Targets: []RefusedRecipient{}}
	for i, t := range in.Targets {
		email := folded(t.Email)
		var reasons []Reason
		if members[email] {
			reasons = append(reasons, B2CMember)
		}
		if !known[t.PartnerID] {
			reasons = append(reasons, UnknownPartner)
		} else if !contacts[Recipient{t.PartnerID, email}] {
			reasons = append(reasons, NotAVerifiedContact)
		}
		if reasons != nil {
			out.Targets = append(out.Targets, RefusedRecipient{i, reasons})
		}
	}
	return out, nil
}

// folded is an address in the form that is compared. The source may have padded it.
func folded(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
