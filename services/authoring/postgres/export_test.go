package postgres

import "fmt"

// The statements whose plans are tested.
const (
	EarlierMails           = earlierMails
	OneDraft               = oneDraft
	RejectedOf             = rejectedOf
	OutsideSegmentOfOthers = outsideSegmentOfOthers
	// OutsideSegmentOfPartners are those of a segment of partners.
	OutsideSegmentOfPartners = outsideSegmentOfPartners
)

// The statements of a draft's targets: of all, and of those that are named.
var (
	SelectTargets = fmt.Sprintf(selectTargets, targetsOf)
	NamedTargets  = fmt.Sprintf(selectTargets, targetsNamed)
)

// The statements of lists, as their filter makes them.
var (
	ListSegments = listSegments
	ListDrafts   = listDrafts
	CountDrafts  = countDrafts
)
