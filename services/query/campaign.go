package query

import (
	"math/big"
	"strconv"
	"time"

	"hub.internal/pkg/tool"
)

// Campaign is one marketing run.
type Campaign struct {
	ID          ID        `json:"campaign_id" jsonschema:"Campaign id"`
	Name        string    `json:"name" jsonschema:"Campaign name"`
	StatusCode  string    `json:"status_code" jsonschema:"1206 accepting, 1208 under review, 1209 closed, 1210 cancelled, 1211 rejected"`
	Status      *string   `json:"status" jsonschema:"Meaning of status_code: accepting, under_review, closed, cancelled or rejected; null for a code without one"`
	StartAt     DateTime  `json:"start_at" jsonschema:"Start, without a zone"`
	EndAt       *DateTime `json:"end_at" jsonschema:"End, without a zone; null when open"`
	OfferCount  int64     `json:"offer_count" jsonschema:"Places offered to reviewers"`
	ApplyCount  int64     `json:"apply_count" jsonschema:"Applications received"`
	ViewCount   int64     `json:"view_count" jsonschema:"Page views"`
	BrandID     ID        `json:"brand_id" jsonschema:"Brand that the campaign is for"`
	PartnerID   ID        `json:"partner_id" jsonschema:"Partner that owns the campaign"`
	PartnerName *string   `json:"partner_name" jsonschema:"Name of the owning partner; null when the source has no such partner"`
}

// SchemaTitle implements schema.Titled.
func (Campaign) SchemaTitle() string { return "Campaign" }

// CampaignFilter selects campaigns; zero members do not filter.
type CampaignFilter struct {
	PartnerID     *int64
	StatusCodes   []string
	StartedAfter  time.Time // inclusive
	StartedBefore time.Time // exclusive
	Keyword       string
	MinApplyCount *int64
	Page
}

// Page is a piece of an ordered list.
type Page struct{ Limit, Offset int64 }

// CampaignPage is the answer of search_campaigns.
type CampaignPage struct {
	Campaigns []CampaignMatch `json:"campaigns" jsonschema:"Newest start_at first, then the highest campaign_id"`
	HasMore   bool            `json:"has_more" jsonschema:"Whether a call with offset + limit finds more"`
	// Warnings are about codes that do not exist, and about nothing found.
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"What may have been meant otherwise, such as a status code that no campaign has, or an unknown partnerId; absent when there is nothing"`
}

// CampaignMatch is a campaign that a search has found, with how it did.
type CampaignMatch struct {
	Campaign
	Selected int64    `json:"selected" jsonschema:"Applications in status SELECTED or DONE"`
	FillRate *float64 `json:"fill_rate" jsonschema:"selected / offer_count, six decimals; null without places"`
}

// SchemaTitle implements schema.Titled.
func (CampaignMatch) SchemaTitle() string { return "CampaignMatch" }

// Count is the number of campaigns.
func (p CampaignPage) Count() int { return len(p.Campaigns) }

// CampaignCounts is a campaign with the number of its selected applications.
type CampaignCounts struct {
	Campaign Campaign
	Selected int64
}

// Performance is the answer of get_campaign_performance.
type Performance struct {
	Campaign Campaign `json:"campaign" jsonschema:"The campaign asked for"`
	Counts   Counts   `json:"counts" jsonschema:"Raw counts"`
	Ratios   Ratios   `json:"ratios" jsonschema:"Derived ratios with six decimals; null where the denominator is 0"`
}

// Counts are a campaign's raw counts.
type Counts struct {
	View     int64 `json:"view" jsonschema:"Page views"`
	Apply    int64 `json:"apply" jsonschema:"Applications received, as the campaign counts them"`
	Offer    int64 `json:"offer" jsonschema:"Places offered"`
	Selected int64 `json:"selected" jsonschema:"Applications in status SELECTED or DONE"`
}

// Ratios are derived from Counts.
type Ratios struct {
	FillRate           *float64 `json:"fill_rate" jsonschema:"selected / offer"`
	ApplicationDensity *float64 `json:"application_density" jsonschema:"apply / view"`
	Oversubscription   *float64 `json:"oversubscription" jsonschema:"apply / offer"`
}

func (c CampaignCounts) performance() Performance {
	n := Counts{View: c.Campaign.ViewCount, Apply: c.Campaign.ApplyCount, Offer: c.Campaign.OfferCount, Selected: c.Selected}
	return Performance{Campaign: c.Campaign, Counts: n, Ratios: Ratios{
		FillRate:           ratio(n.Selected, n.Offer),
		ApplicationDensity: ratio(n.Apply, n.View),
		Oversubscription:   ratio(n.Apply, n.Offer),
	}}
}

// ratio is part/whole with six decimals, half away from zero; null without a whole.
func ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	r, _ := strconv.ParseFloat(big.NewRat(part, whole).FloatString(6), 64)
	return &r
}
