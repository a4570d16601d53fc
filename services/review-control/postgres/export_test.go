package postgres

import reviewcontrol "hub.internal/services/review-control"

// The statements whose plans are tested.
const (
	OneReview                = oneReview
	ManyReviews              = manyReviews
	OneTarget                = oneTarget
	MailsTo                  = mailsTo
	LockTargets              = lockTargets
	ListSuppressions         = listSuppressions
	ListSuppressionsOfDomain = listSuppressionsOfDomain
	MissingDeliveries        = missingDeliveries
	MissingIntents           = missingIntents
	MissingInspections       = missingInspections
	MissingFinishes          = missingFinishes
	MissingSyncs             = missingSyncs
	MissingImports           = missingImports
	OpenMakers               = openMakers
	AheadOf                  = aheadOf
	FlaggedOf                = flagged
	PresentAt                = presentAt
	Variants                 = variants
	ForgetPresence           = forgetPresence
	RejectionsOf             = rejectionsOf
	NewestRejections         = newestRejections
	Backlog                  = backlog
	Unsynced                 = unsynced
)

// ListTargets is the query of a filter.
func ListTargets(id reviewcontrol.ID, f reviewcontrol.TargetFilter) (string, []any) {
	return listTargets(id, f)
}
