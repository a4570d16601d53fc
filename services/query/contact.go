package query

// Partner is a B2B account.
type Partner struct {
	ID          ID       `json:"partner_id" jsonschema:"Partner id"`
	Name        string   `json:"name" jsonschema:"Corporate name"`
	BusinessNo  *string  `json:"business_no" jsonschema:"Business registration number; null when unknown"`
	CountryCode string   `json:"country_code" jsonschema:"Country code such as KR"`
	CreatedAt   DateTime `json:"created_at" jsonschema:"When the account was made, without a zone"`
}

// Contact is a corporate contact person whose e-mail address has been verified; no
// other kind of contact leaves the service.
type Contact struct {
	ID            ID        `json:"partner_admin_id" jsonschema:"Contact id"`
	Name          string    `json:"name" jsonschema:"Name of the person"`
	Email         string    `json:"email" jsonschema:"Verified e-mail address"`
	Position      *string   `json:"position" jsonschema:"Position in the company; null when unknown"`
	AccountStatus string    `json:"account_status" jsonschema:"READY is active; others are PENDING, LEAVE and so on"`
	LastLoginAt   *DateTime `json:"last_login_at" jsonschema:"Last log-in, without a zone; null when there was none"`
}

// BrandContact is the one contact that search_brands names for a brand.
type BrandContact struct {
	ID       ID      `json:"partner_admin_id" jsonschema:"Contact id"`
	Name     string  `json:"name" jsonschema:"Name of the person"`
	Email    string  `json:"email" jsonschema:"Verified e-mail address"`
	Position *string `json:"position" jsonschema:"Position in the company; null when unknown"`
}

// PartnerContacts is the answer of search_partner_contacts.
type PartnerContacts struct {
	Partner  Partner   `json:"partner" jsonschema:"The partner asked for"`
	Contacts []Contact `json:"contacts" jsonschema:"Contacts with a verified address; newest log-in first, those without one last, then by id"`
}

// Count is the number of contacts.
func (p PartnerContacts) Count() int { return len(p.Contacts) }
