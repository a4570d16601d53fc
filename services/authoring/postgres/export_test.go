package postgres

// The statements whose plans are tested.
const (
	ListSegments         = listSegments
	ListSegmentsOfKind   = listSegmentsOfKind
	ListDrafts           = listDrafts
	ListDraftsOfStatus   = listDraftsOfStatus
	ListDraftsOfStatuses = listDraftsOfStatuses
	OneDraft             = oneDraft
	SelectTargets        = selectTargets
)
