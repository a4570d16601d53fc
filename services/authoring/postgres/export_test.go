package postgres

// The statements whose plans are tested.
const (
	ListSegments           = listSegments
	ListSegmentsOfKind     = listSegmentsOfKind
	OneDraft               = oneDraft
	SelectTargets          = selectTargets
	OutsideSegmentOfOthers = outsideSegmentOfOthers
	// OutsideSegmentOfPartners are those of a segment of partners.
	OutsideSegmentOfPartners = outsideSegmentOfPartners
)

// The statements of lists, as their filter makes them.
var (
	ListDrafts  = listDrafts
	CountDrafts = countDrafts
)
