// Package recipients judges whom Hub may write to, and which ids of partners, brands and campaigns there are: what authoring asks
// before it keeps a draft or a segment. It refuses to know how the source is read.
package recipients

import (
	"context"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"hub.internal/pkg/fault"
)

// Path is where authoring asks whether a draft's targets may be written to.
const Path = "/internal/recipients/check"

const (
	// maxRecipients is how many targets one check takes: a whole draft.
	maxRecipients = 10_000
	// MaxBody holds as many, each with the longest address.
	MaxBody = 4 << 20
)

// Reason says why Hub may not write to a target.
type Reason string

// The reasons against a recipient (CONTRACT.md 6.6).
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
	// Name is what the draft calls them; absent where it has no name.
	Name string `json:"name,omitempty"`
}

// Request asks about a draft's targets.
type Request struct {
	Targets []Recipient `json:"targets"`
}

// Response names the targets that may not be written to, in their order.
type Response struct {
	Targets []Refused `json:"targets"`
	// Named are the targets whose name is none of their contact's, in their order. Absent without any.
	Named []Named `json:"named,omitempty"`
}

// Named is a target with the names of its contact: mostly one, as an address is one person's.
type Named struct {
	Index int      `json:"index"`
	Names []string `json:"names"`
}

// Refused is a target with each reason against it, the gravest first.
type Refused struct {
	Index   int      `json:"index"`
	Reasons []Reason `json:"reasons"`
	// Meant is who may have been meant; absent when nobody comes to mind.
	Meant *Meant `json:"meant,omitempty"`
}

// Meant is the partner of a brand or campaign whose id was given for that of a partner.
type Meant struct {
	Kind      Kind  `json:"kind"`
	PartnerID int64 `json:"partner_id"`
}

// Source knows partners, their contacts and the members. Its errors are faults.
type Source interface {
	IDSource
	// ContactAddresses calls yield with each address of these partners that is verified and
	// whose account is READY, and the name of the contact, as the source writes them.
	ContactAddresses(ctx context.Context, partners []int64, yield func(partner int64, email, name string)) error
	// MemberAddresses calls yield with each member's address that may be one of emails.
	MemberAddresses(ctx context.Context, emails []string, yield func(email string)) error
}

// Judge judges whom Hub may write to.
type Judge struct{ source Source }

// New returns a judge of recipients.
func New(source Source) *Judge { return &Judge{source} }

// Check names the targets that may not be written to. Addresses are compared without
// regard to case. It reads the source in a handful of statements, whatever the number of targets.
func (j *Judge) Check(ctx context.Context, in Request) (Response, error) {
	if len(in.Targets) > maxRecipients {
		return Response{}, fault.New(fault.Validation, "At most %d targets can be checked at once.", maxRecipients)
	}
	partners := make([]int64, len(in.Targets))
	var emails []string
	written := map[string]bool{}
	for i, t := range in.Targets {
		partners[i] = t.PartnerID
		if email := folded(t.Email); !written[email] {
			written[email] = true
			emails = append(emails, t.Email)
		}
	}
	partners = distinct(partners)
	known, err := j.source.Owners(ctx, PartnerID, partners)
	if err != nil {
		return Response{}, err
	}
	contacts, err := j.contacts(ctx, partners, written)
	if err != nil {
		return Response{}, err
	}
	members := map[string]bool{}
	if err := j.source.MemberAddresses(ctx, emails, func(email string) {
		if email = folded(email); written[email] {
			members[email] = true
		}
	}); err != nil {
		return Response{}, err
	}
	out := Response{Targets: []Refused{}}
	for i, t := range in.Targets {
		email := folded(t.Email)
		var reasons []Reason
		if members[email] {
			reasons = append(reasons, B2CMember)
		}
		if _, is := known[t.PartnerID]; !is {
			reasons = append(reasons, UnknownPartner)
		} else if names, is := contacts[address{t.PartnerID, email}]; !is {
			reasons = append(reasons, NotAVerifiedContact)
		} else if name := whole(t.Name); name != "" && !slices.ContainsFunc(names, func(n string) bool { return whole(n) == name }) {
			out.Named = append(out.Named, Named{i, names})
		}
		if reasons != nil {
			out.Targets = append(out.Targets, Refused{Index: i, Reasons: reasons})
		}
	}
	return out, j.guess(ctx, in.Targets, out.Targets, written)
}

// address is one of a partner's, folded.
type address struct {
	partner int64
	email   string
}

// contacts are the verified addresses of partners among those written, with the names of the contacts.
func (j *Judge) contacts(ctx context.Context, partners []int64, written map[string]bool) (map[address][]string, error) {
	contacts := map[address][]string{}
	return contacts, j.source.ContactAddresses(ctx, partners, func(partner int64, email, name string) {
		if email = folded(email); written[email] {
			contacts[address{partner, email}] = append(contacts[address{partner, email}], name)
		}
	})
}

// guess says who was meant where the id is that of a brand or a campaign: by the first 500 ids that were refused. Where it
// is a partner's as well, the address has to be a verified contact of the other.
func (j *Judge) guess(ctx context.Context, targets []Recipient, refused []Refused, written map[string]bool) error {
	var ids []int64
	for _, f := range refused {
		if f.Reasons[0] != B2CMember {
			ids = append(ids, targets[f.Index].PartnerID)
		}
	}
	ids = distinct(ids)
	ids = ids[:min(len(ids), mostGuessed)]
	for _, kind := range []Kind{BrandID, CampaignID} {
		if len(ids) == 0 {
			return nil
		}
		owners, err := j.source.Owners(ctx, kind, ids)
		if err != nil {
			return err
		}
		contacts, err := j.contacts(ctx, distinct(slices.Collect(maps.Values(owners))), written)
		if err != nil {
			return err
		}
		for i := range refused {
			f := &refused[i]
			t := targets[f.Index]
			owner, is := owners[t.PartnerID]
			if is && f.Meant == nil && f.Reasons[0] != B2CMember &&
				(f.Reasons[0] == UnknownPartner || contacts[address{owner, folded(t.Email)}] != nil) {
				f.Meant = &Meant{kind, owner}
			}
		}
	}
	return nil
}

// folded is an address or a name in the form that is compared. The source may have padded it.
func folded(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// whole is a name that is compared: its syllables may be written in parts.
func whole(name string) string { return norm.NFC.String(folded(name)) }

// IDsPath is where authoring asks which of a segment's ids the source does not have.
const IDsPath = "/internal/ids/check"

const (
	// maxIDs is how many ids one check takes: a whole segment.
	maxIDs = 50_000
	// IDsMaxBody holds as many of the longest.
	IDsMaxBody = 2 << 20
	// mostUnknown is how many of those that do not exist are named.
	mostUnknown = 10
	// mostGuessed is how many of those that do not exist are looked up as something else.
	mostGuessed = 500
)

// Kind is what an id is the primary key of.
type Kind string

// The kinds of what is written to, or about.
const (
	PartnerID  Kind = "partner"
	BrandID    Kind = "brand"
	CampaignID Kind = "campaign"
)

var kinds = []Kind{PartnerID, BrandID, CampaignID}

// IDsRequest asks which of the ids are ids of the kind, at most 50,000.
type IDsRequest struct {
	Kind Kind    `json:"kind"`
	IDs  []int64 `json:"ids"`
}

// IDsResponse names those that are not.
type IDsResponse struct {
	// Unknown counts them, each once; First are the first ten in the order of the request.
	Unknown int     `json:"unknown"`
	First   []int64 `json:"first"`
	// Others tell how many of the first 500 of them are ids of another kind; kinds without one are absent.
	Others []OtherKind `json:"others"`
}

// OtherKind is how many ids are ids of another kind than was said.
type OtherKind struct {
	Kind  Kind `json:"kind"`
	Count int  `json:"count"`
}

// IDSource knows what exists. Its errors are faults.
type IDSource interface {
	// Owners are those of the ids that exist, each with its partner's id; of a partner that is its own.
	Owners(ctx context.Context, kind Kind, ids []int64) (map[int64]int64, error)
	// Rows are those of the ids that exist, in no order.
	Rows(ctx context.Context, kind Kind, ids []int64) ([]Row, error)
}

// CheckIDs names the ids that the source does not have. It reads the source by primary key, 500 ids at a time. It returns
// E_VALIDATION for another kind or more than 50,000 ids.
func (j *Judge) CheckIDs(ctx context.Context, in IDsRequest) (IDsResponse, error) {
	if len(in.IDs) > maxIDs || !slices.Contains(kinds, in.Kind) {
		return IDsResponse{}, fault.New(fault.Validation, "At most %d ids of one of %v can be checked at once.", maxIDs, kinds)
	}
	ids := distinct(in.IDs)
	known, err := j.source.Owners(ctx, in.Kind, ids)
	if err != nil {
		return IDsResponse{}, err
	}
	missing := slices.DeleteFunc(ids, func(id int64) bool { _, exists := known[id]; return exists })
	out := IDsResponse{Unknown: len(missing), First: missing[:min(len(missing), mostUnknown)], Others: []OtherKind{}}
	for _, kind := range kinds {
		if kind == in.Kind || len(missing) == 0 {
			continue
		}
		others, err := j.source.Owners(ctx, kind, missing[:min(len(missing), mostGuessed)])
		if err != nil {
			return IDsResponse{}, err
		}
		if len(others) > 0 {
			out.Others = append(out.Others, OtherKind{kind, len(others)})
		}
	}
	return out, nil
}

// RowsPath is where authoring asks for the rows of a segment's targets.
const RowsPath = "/internal/rows"

// maxRows is how many rows one question is for.
const maxRows = 10_000

// RowsRequest asks for the rows of the ids, at most 10,000.
type RowsRequest struct {
	Kind Kind    `json:"kind"`
	IDs  []int64 `json:"ids"`
}

// RowsResponse has those that exist, in no order.
type RowsResponse struct {
	Rows []Row `json:"rows"`
}

// Row is what search_brands, search_campaigns or get_brand answers of an id: a BrandMatch without a contact, a Campaign, a Partner.
type Row struct {
	ID  int64 `json:"id"`
	Row any   `json:"row"`
}

// Rows reads rows by primary key, 500 at a time. It returns E_VALIDATION for another kind or more than 10,000 ids.
func (j *Judge) Rows(ctx context.Context, in RowsRequest) (RowsResponse, error) {
	if len(in.IDs) > maxRows || !slices.Contains(kinds, in.Kind) {
		return RowsResponse{}, fault.New(fault.Validation, "At most %d rows of one of %v can be read at once.", maxRows, kinds)
	}
	rows, err := j.source.Rows(ctx, in.Kind, distinct(in.IDs))
	return RowsResponse{rows}, err
}

// distinct has each id once, where it came first.
func distinct(ids []int64) []int64 {
	seen, list := make(map[int64]bool, len(ids)), make([]int64, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}
