package postgres

// The statements whose plans are tested.
const (
	ListSegments       = listSegments
	ListSegmentsOfKind = listSegmentsOfKind
	OneDraft           = oneDraft
	SelectTargets      = selectTargets
	StrangersToOthers  = strangersToOthers
	// StrangersToPartners are those of a segment of partners.
	StrangersToPartners = strangersToPartners
)

// The statements of lists, as their filter makes them.
var (
	ListDrafts  = listDrafts
	CountDrafts = countDrafts
)
