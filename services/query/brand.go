package query

import (
	"time"

	"hub.internal/pkg/tool"
)

// Brand is a marketing unit of one partner.
type Brand struct {
	ID           ID       `json:"brand_id" jsonschema:"Brand id"`
	Name         string   `json:"brand_name" jsonschema:"Brand name"`
	President    string   `json:"president" jsonschema:"Representative, free text"`
	CategoryID   ID       `json:"category_id" jsonschema:"Category of the brand"`
	CategoryName *string  `json:"category_name" jsonschema:"Korean name of the category, else the English one; null when it has neither"`
	CountryCode  string   `json:"country_code" jsonschema:"Country code such as KR"`
	PartnerID    ID       `json:"partner_id" jsonschema:"Partner that owns the brand"`
	HomepageURL  *string  `json:"homepage_url" jsonschema:"Home page; null when unknown"`
	CreatedAt    DateTime `json:"created_at" jsonschema:"When the brand was made, without a zone"`
}

// SchemaTitle implements schema.Titled.
func (Brand) SchemaTitle() string { return "Brand" }

// BrandMatch is a row of search_brands.
type BrandMatch struct {
	ID             ID            `json:"brand_id" jsonschema:"Brand id"`
	Name           string        `json:"brand_name" jsonschema:"Brand name"`
	President      string        `json:"president" jsonschema:"Representative, free text"`
	CategoryID     ID            `json:"category_id" jsonschema:"Category of the brand"`
	CategoryName   *string       `json:"category_name" jsonschema:"Korean name of the category, else the English one; null when it has neither"`
	CountryCode    string        `json:"country_code" jsonschema:"Country code such as KR"`
	PartnerID      ID            `json:"partner_id" jsonschema:"Partner that owns the brand: the externalId of a segment of kind partner"`
	PartnerName    *string       `json:"partner_name" jsonschema:"Corporate name of the partner; null when the source has no such partner"`
	LastCampaignAt *DateTime     `json:"last_campaign_at" jsonschema:"Greatest start_at of the brand's campaigns, without a zone; null when it has none"`
	LastCampaign   *LastCampaign `json:"last_campaign" jsonschema:"That campaign, whatever its status; null when there is none"`
	Contact        *BrandContact `json:"contact" jsonschema:"A person to write to: verified address, active account, newest log-in. Null unless hasVerifiedContact is true"`
}

// SchemaTitle implements schema.Titled.
func (BrandMatch) SchemaTitle() string { return "BrandMatch" }

// LastCampaign is the campaign of a brand with the greatest start_at, and of several the one with the highest id.
type LastCampaign struct {
	ID         ID       `json:"campaign_id" jsonschema:"Campaign id"`
	Name       string   `json:"name" jsonschema:"Campaign name"`
	StatusCode string   `json:"status_code" jsonschema:"1206 accepting, 1208 under review, 1209 closed, 1210 cancelled, 1211 rejected"`
	Status     *string  `json:"status" jsonschema:"Meaning of status_code; null for a code without one"`
	StartAt    DateTime `json:"start_at" jsonschema:"Start, without a zone; it may be in the future"`
}

// BrandFilter selects brands; zero members do not filter.
type BrandFilter struct {
	Category           *CategoryScope
	CountryCode        string
	LastCampaignAfter  time.Time // inclusive
	LastCampaignBefore time.Time // exclusive
	VerifiedContact    bool
	Keyword            string
	Page
}

// BrandPage is the answer of search_brands.
type BrandPage struct {
	Brands  []BrandMatch `json:"brands" jsonschema:"One row per brand; newest last_campaign_at first, those without a campaign last, then by brand_id"`
	HasMore bool         `json:"has_more" jsonschema:"Whether a call with offset + limit finds more"`
	// Warnings are about codes and categories that do not exist, and about nothing found.
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"What may have been meant otherwise, such as a countryCode that no brand has, or a keyword that is in brand_name alone; absent when there is nothing"`
}

// Count is the number of brands.
func (p BrandPage) Count() int { return len(p.Brands) }

// BrandProfile is the answer of get_brand.
type BrandProfile struct {
	Brand        Brand      `json:"brand" jsonschema:"The brand asked for"`
	Partner      *Partner   `json:"partner" jsonschema:"Partner that owns the brand; null when the source has no such partner"`
	Contacts     []Contact  `json:"contacts" jsonschema:"The partner's contacts with a verified address and an active account; newest log-in first, those without one last, then by id"`
	Campaigns    []Campaign `json:"campaigns" jsonschema:"The brand's most recent campaigns, newest start_at first"`
	LiterBalance string     `json:"liter_balance" jsonschema:"Current liter balance: a decimal after the newest deposit transaction, 0.00 when there is none"`
}

// Partner is a B2B account.
type Partner struct {
	ID          ID       `json:"partner_id" jsonschema:"Partner id"`
	Name        string   `json:"name" jsonschema:"Corporate name"`
	BusinessNo  *string  `json:"business_no" jsonschema:"Business registration number; null when unknown"`
	CountryCode string   `json:"country_code" jsonschema:"Country code such as KR"`
	CreatedAt   DateTime `json:"created_at" jsonschema:"When the account was made, without a zone"`
}

// SchemaTitle implements schema.Titled.
func (Partner) SchemaTitle() string { return "Partner" }

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

// SchemaTitle implements schema.Titled.
func (Contact) SchemaTitle() string { return "Contact" }

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
