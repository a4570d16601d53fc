// Package jobs runs what payments' transactions leave behind. Each job does what is right when it runs, so that any of
// them may run late, twice, or twice at once.
//
// The store adds a job in the transaction of what it follows from, and names its kind (package postgres has them). A job that
// has to wait, such as for the next attempt of a notification, runs again later rather than sleeping in a worker.
package jobs

import (
	"context"
	"time"

	"hub.internal/pkg/jobs"
	"hub.internal/services/payments"
	"hub.internal/services/payments/postgres"
)

const (
	// missingEvery is how often missing jobs are looked for, completeEvery calls whose process has gone, and
	// sweepEvery whether the nightly sweep is due.
	missingEvery  = time.Minute
	completeEvery = 30 * time.Second
	sweepEvery    = time.Hour
	// fetchPause is the pause between two polls of the queues of webhooks and notifications.
	fetchPause = 20 * time.Millisecond
	// notifyTakes and resolveTakes bound one run, sweepTakes a sweep at a stretch.
	notifyTakes  = 20 * time.Second
	resolveTakes = 2 * time.Minute
	sweepTakes   = time.Hour

	webhookWorkers = 16
	notifyWorkers  = 16
)

// Runner runs the jobs of payments. Those of one order are not run one after the other: the store's lock on the order, and the
// lease of its check, make them harmless to each other. Webhooks and notifications have queues of their own, so that a slow
// receiver or a flood of webhooks does not hold up what the others wait for.
func Runner(service *payments.Service, store *postgres.Store, now func() time.Time) jobs.Runner {
	var r jobs.Runner
	r.Kinds = []jobs.Kind{
		jobs.On(func(ctx context.Context, j postgres.Resolve) error {
			if j.Asked {
				return service.LookAt(ctx, j.Code)
			}
			return snooze(service.ResolveDue(ctx, j.Code))
		}, jobs.Within[postgres.Resolve](resolveTakes)),
		jobs.On(func(ctx context.Context, j postgres.ProcessWebhook) error {
			return snooze(service.ProcessWebhook(ctx, j.Provider, j.Env, j.Key))
		}),
		jobs.On(func(ctx context.Context, j postgres.Notify) error { return snooze(service.Notify(ctx, j.ID)) },
			jobs.Within[postgres.Notify](notifyTakes)),
		jobs.On(func(ctx context.Context, _ postgres.Complete) error { return service.Complete(ctx) },
			jobs.Within[postgres.Complete](resolveTakes)),
		jobs.On(func(ctx context.Context, _ postgres.AddMissing) error { return store.AddMissing(ctx, now()) }),
		jobs.On(func(ctx context.Context, _ postgres.Sweep) error { return service.Sweep(ctx) }, jobs.Within[postgres.Sweep](sweepTakes)),
	}
	r.Queues = []jobs.Queue{
		{Name: postgres.WebhookQueue, Workers: webhookWorkers, Pause: fetchPause},
		{Name: postgres.NotifyQueue, Workers: notifyWorkers, Pause: fetchPause},
		{Name: postgres.SweepQueue, Workers: 1},
	}
	r.Periodic = []jobs.Periodic{{Every: missingEvery, Job: postgres.AddMissing{}}, {Every: completeEvery, Job: postgres.Complete{}},
		{Every: sweepEvery, Job: postgres.Sweep{}}}
	r.Timeout = resolveTakes
	return r
}

// snooze lets a job run again after a wait, if there is one.
func snooze(wait time.Duration, err error) error {
	if err == nil && wait > 0 {
		return jobs.Later(wait)
	}
	return err
}
