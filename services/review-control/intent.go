package reviewcontrol

import (
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/review-control/mailer"
)

// QueueTakes is when a call of queue_for_review should long have ended.
const QueueTakes = 10 * time.Second

// Intent is a call of queue_for_review that was found right, before authoring was asked:
// whoever finds it can bring it to its end.
type Intent struct {
	DraftID     ID
	TargetCount int
	Maker       Maker
	Sender      mailer.Address
	QueuedAt    time.Time
	Actor, Note string
	Key         write.Key
	Caller      caller.Caller
	InputHash   []byte
	// Warnings are for the call's answer.
	Warnings []tool.Warning
}
