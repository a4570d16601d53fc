package postgres

// The statements whose plans are tested.
const (
	EarlierMails           = earlierMails
	OneDraft               = oneDraft
	RejectedOf             = rejectedOf
	SelectTargets          = selectTargets
	OutsideSegmentOfOthers = outsideSegmentOfOthers
	// OutsideSegmentOfPartners are those of a segment of partners.
	OutsideSegmentOfPartners = outsideSegmentOfPartners
)

// The statements of lists, as their filter makes them.
var (
	ListSegments = listSegments
	ListDrafts   = listDrafts
	CountDrafts  = countDrafts
)
