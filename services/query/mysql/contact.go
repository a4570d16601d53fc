package mysql

import (
	"context"
	"database/sql"

	"hub.internal/services/query"
)

// verified is the one condition under which a contact may leave the source; every
// statement that reads partner_admin (alias a) holds it.
const verified = `a.email_verified = 1`

// active narrows verified contacts to those who can be written to.
const active = verified + ` AND a.account_status = 'READY'`

// newestLogin orders contacts: NULL is the least, so it comes last.
const newestLogin = `a.last_login_at DESC, a.partner_admin_id`

// contactColumns are what a query.Contact is made of, in the order of contactFields and nullContact.
const contactColumns = `a.partner_admin_id, a.name, a.email, a.position, a.account_status, a.last_login_at`

// partnerColumns are what a query.Partner is made of (alias p).
const partnerColumns = `p.partner_id, p.name, p.business_no, p.country_code, p.created_at`

// PartnerContacts implements query.Source.
// The partner is found by the primary key and its contacts by ix_partner_admin_partner, which has both conditions of active
// in it. nil says that there is no such partner. With inactive, contacts that are verified and cannot be written to are
// there as well, for people to see; no answer has an address that is not verified.
func (s *Source) PartnerContacts(ctx context.Context, partner int64, inactive bool) (*query.PartnerContacts, error) {
	which := active
	if inactive {
		which = verified
	}
	// One row without a contact when the partner has none; no row without a partner.
	statement := `SELECT ` + partnerColumns + `, ` + contactColumns + `
FROM partner p LEFT JOIN partner_admin a ON a.partner_id = p.partner_id AND ` + which + `
WHERE p.partner_id = ?
ORDER BY ` + newestLogin
	var out *query.PartnerContacts
	err := s.Query(ctx, statement, []any{partner}, func(r *sql.Rows) error {
		var p query.Partner
		var c nullContact
		if err := r.Scan(append(partnerFields(&p), c.fields()...)...); err != nil {
			return err
		}
		if out == nil {
			out = &query.PartnerContacts{Partner: p, Contacts: []query.Contact{}}
		}
		if c.id.Valid {
			out.Contacts = append(out.Contacts, c.contact())
		}
		return nil
	})
	return out, err
}

// partnerFields are where partnerColumns are scanned to.
func partnerFields(p *query.Partner) []any {
	return []any{&p.ID, &p.Name, &p.BusinessNo, &p.CountryCode, dateTime(&p.CreatedAt)}
}

// contactFields are where contactColumns are scanned to.
func contactFields(c *query.Contact) []any {
	return []any{&c.ID, &c.Name, &c.Email, &c.Position, &c.AccountStatus, nullDateTime(&c.LastLoginAt)}
}

// nullContact is a contact of an outer join.
// Its columns are NULL where the partner has no contact, so that each is scanned into a type that takes that.
type nullContact struct {
	id                  sql.NullInt64
	name, email, status sql.NullString
	position            *string
	lastLogin           *query.DateTime
}

// fields are where contactColumns are scanned to.
func (c *nullContact) fields() []any {
	return []any{&c.id, &c.name, &c.email, &c.position, &c.status, nullDateTime(&c.lastLogin)}
}

// contact is the contact, once its id was found to be there.
func (c *nullContact) contact() query.Contact {
	return query.Contact{ID: query.ID(c.id.Int64), Name: c.name.String, Email: c.email.String, Position: c.position,
		AccountStatus: c.status.String, LastLoginAt: c.lastLogin}
}
