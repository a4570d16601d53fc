// Package jobs runs what review-control's transactions leave behind. Each job does what is right
// when it runs, so that any of them may run late, twice, or twice at once.
package jobs

import (
	"context"
	"time"

	"hub.internal/pkg/jobs"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/postgres"
	"hub.internal/services/review-control/suppression"
)

const (
	// missingEvery is how often missing jobs are looked for.
	missingEvery = 5 * time.Minute
	// fetchPause is the pause between two looks for mails.
	fetchPause = 20 * time.Millisecond
	// importTakes is the longest time that an import may take at a stretch.
	importTakes = 10 * time.Minute
)

// Queue ends what a call of queue_for_review has left.
type Queue interface {
	Complete(ctx context.Context, id reviewcontrol.ID) error
}

// Runner runs review-control's jobs; workers is how many mails are handed over at once.
func Runner(service *reviewcontrol.Service, queue Queue, list *suppression.List, store *postgres.Store, workers int) jobs.Runner {
	// Each kind says nothing but which method of the Service it is: the jobs package of Hub retries what fails.
	var r jobs.Runner
	r.Kinds = []jobs.Kind{
		jobs.On(func(ctx context.Context, j postgres.CompleteQueue) error {
			return queue.Complete(ctx, j.DraftID)
		}),
		jobs.On(func(ctx context.Context, j postgres.FinishReview) error {
			wait, err := service.Finish(ctx, j.DraftID)
			if err == nil && wait > 0 {
				return jobs.Later(wait)
			}
			return err
		}),
		jobs.On(func(ctx context.Context, j postgres.InspectDraft) error { return service.Inspect(ctx, j.DraftID) }),
		jobs.On(func(ctx context.Context, j postgres.SyncDraft) error { return service.Sync(ctx, j.DraftID) }),
		jobs.On(func(ctx context.Context, j postgres.Deliver) error { return deliver(ctx, service, j) },
			jobs.Abandoned(func(ctx context.Context, j postgres.Deliver) error { return service.Abandon(ctx, j.DraftID, j.Index) })),
		jobs.On(func(ctx context.Context, j postgres.ReadImport) error { return list.RunImport(ctx, j.ImportID) },
			jobs.Within[postgres.ReadImport](importTakes)),
		jobs.On(func(ctx context.Context, _ postgres.AddMissing) error { return store.AddMissingJobs(ctx) }),
	}
	r.Queues = []jobs.Queue{{Name: postgres.MailQueue, Workers: workers, Pause: fetchPause}}
	r.Periodic = []jobs.Periodic{{Every: missingEvery, Job: postgres.AddMissing{}}}
	r.Timeout = service.DeliveryTakes()
	return r
}

// deliver waits for the mail's turn, unless that is far away, and hands it over.
func deliver(ctx context.Context, service *reviewcontrol.Service, j postgres.Deliver) error {
	at, due, err := service.Turn(ctx, j.DraftID, j.Index)
	if err != nil || !due {
		return err
	}
	wait := time.Until(at)
	if wait > reviewcontrol.WaitInLine {
		return jobs.Later(wait - reviewcontrol.WaitInLine/2) // jobs wake up in steps of a few seconds
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-jobs.Stopping(ctx):
			return jobs.Later(max(time.Until(at), 0))
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return jobs.Later(max(time.Until(at), 0))
	}
	again, err := service.Deliver(ctx, j.DraftID, j.Index)
	if err == nil && again > 0 {
		return jobs.Later(again)
	}
	return err
}
