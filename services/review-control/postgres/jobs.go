package postgres

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-kit/kit/endpoint"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"hub.internal/pkg/telemetry"
	reviewcontrol "hub.internal/services/review-control"
)

// The jobs. Each does what is right when it runs, so that any of them may run late, twice,
// or twice at once.
type (
	// completeQueue ends a call of queue_for_review that did not end by itself.
	completeQueue struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
	}
	// finishReview makes the approved targets of an approved draft wait for their delivery.
	finishReview struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
	}
	// syncDraft tells authoring what became of a review.
	syncDraft struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
	}
	// deliver hands one mail over.
	deliver struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
		Index   int              `json:"index"`
	}
	// readImport reads a file into the suppression list.
	readImport struct {
		ImportID reviewcontrol.ID `json:"import_id"`
	}
	// tend adds the jobs that are missing.
	tend struct{}
)

// Kind implements river.JobArgs.
func (completeQueue) Kind() string { return "complete_queue" }

// Kind implements river.JobArgs.
func (finishReview) Kind() string { return "finish_review" }

// Kind implements river.JobArgs.
func (syncDraft) Kind() string { return "sync_draft" }

// Kind implements river.JobArgs.
func (deliver) Kind() string { return "deliver" }

// Kind implements river.JobArgs.
func (readImport) Kind() string { return "read_import" }

// Kind implements river.JobArgs.
func (tend) Kind() string { return "tend" }

// mailQueue is for what waits for an SMTP server: nothing else waits behind it.
const mailQueue = "mail"

// InsertOpts implements river.JobArgsWithInsertOpts.
func (deliver) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: mailQueue} }

const (
	// syncAfter is how long deliveries are counted before authoring is told.
	syncAfter = time.Second
	// tendEvery is how often missing jobs are looked for, and overdue how old what misses
	// one has to be.
	tendEvery = 5 * time.Minute
	overdue   = time.Minute
	// otherWorkers is how many jobs that are no mails run at once.
	otherWorkers = 4
	// fetchCooldown is the pause between two looks for mails: with each as many are fetched as
	// there are idle workers.
	fetchCooldown = 20 * time.Millisecond
	// importTakes is the longest time that an import may take at a stretch.
	importTakes = 10 * time.Minute
	// rescueRest is what a job's end may take on top of its time.
	rescueRest = 10 * time.Second
	// stopTakes is how long running hand-overs may go on when the process stops.
	stopTakes = 6 * time.Second
	// longestRetry bounds the wait after a job failed.
	longestRetry = 5 * time.Minute
)

// Runner runs the jobs.
type Runner struct {
	Store   *Store
	Service *reviewcontrol.Service
	// Workers is how many mails are handed over at once.
	Workers int
	// Instance names the process among its replicas, and is the same when it starts again:
	// it takes over what it had in hand when it died. Empty takes over nothing.
	Instance string
	Logger   *slog.Logger
}

// Run works until ctx ends; then running hand-overs finish. It waits for a store that is
// away, also at the start.
func (r Runner) Run(ctx context.Context) error {
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		client, err := r.client(ctx)
		if err != nil {
			return err
		}
		failed := r.takeOver(ctx)
		if failed == nil {
			failed = client.Start(ctx)
		}
		if failed == nil {
			<-client.Stopped()
			failed = errors.New("the jobs' client stopped by itself")
		}
		if ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "jobs do not run yet", "error", explain(failed))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// takeOver ends what an earlier process of this instance was in the middle of: none of it
// runs any more, so nobody has to wait until it is overdue. What died with its host is left
// to River's rescuer.
func (r Runner) takeOver(ctx context.Context) error {
	if r.Instance == "" {
		return nil
	}
	const mine = `state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1`
	left, err := collect(ctx, r.Store.pool, pgx.RowToStructByPos[place], `SELECT (args ->> 'draft_id')::bigint, (args ->> 'index')::int FROM review_control.river_job WHERE kind = 'deliver' AND `+mine, r.Instance)
	if err != nil {
		return err
	}
	for _, p := range left {
		if err := r.Service.Abandon(ctx, p.Draft, p.Index); err != nil {
			return err
		}
	}
	if _, err := r.Store.pool.Exec(ctx, `UPDATE review_control.river_job SET state = 'available', scheduled_at = now() WHERE `+mine, r.Instance); err != nil {
		return err
	}
	// The others need not wait for the end of its term either.
	_, err = r.Store.pool.Exec(ctx, `DELETE FROM review_control.river_leader WHERE leader_id = $1`, r.Instance)
	return err
}

// place is a target of a delivery.
type place struct {
	Draft reviewcontrol.ID
	Index int
}

// client is a new one each time: one whose start failed is not started again. stopping ends
// the waits of jobs, which are not told when a stop begins.
func (r Runner) client(stopping context.Context) (*river.Client[pgx.Tx], error) {
	takes := r.Service.DeliveryTakes()
	workers := river.NewWorkers()
	river.AddWorker(workers, work(func(ctx context.Context, j completeQueue) error { return r.Service.CompleteQueue(ctx, j.DraftID) }))
	river.AddWorker(workers, work(func(ctx context.Context, j finishReview) error { return r.Service.Finish(ctx, j.DraftID) }))
	river.AddWorker(workers, work(func(ctx context.Context, j syncDraft) error { return r.Service.Sync(ctx, j.DraftID) }))
	river.AddWorker(workers, work(func(ctx context.Context, j deliver) error { return r.deliver(ctx, stopping, j) }))
	river.AddWorker(workers, work(func(ctx context.Context, _ tend) error { return r.Store.Tend(ctx) }))
	imports := work(func(ctx context.Context, j readImport) error { return r.Service.RunImport(ctx, j.ImportID) })
	imports.timeout = importTakes
	river.AddWorker(workers, imports)
	return river.NewClient(riverpgxv5.New(r.Store.pool), &river.Config{
		ID: r.Instance, Schema: schema, Logger: r.Logger, Workers: workers,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: otherWorkers}, mailQueue: {MaxWorkers: r.Workers, FetchCooldown: fetchCooldown}},
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(tendEvery),
			func() (river.JobArgs, *river.InsertOpts) { return tend{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})},
		JobTimeout: takes, RescueStuckJobsAfter: takes + rescueRest, SoftStopTimeout: stopTakes, RetryPolicy: patient{},
		// A finished job is of no more use: what it did is in our own tables.
		CompletedJobRetentionPeriod: time.Hour, CancelledJobRetentionPeriod: time.Hour,
		// Only an owner may rebuild an index.
		ReindexerIndexNames: []string{},
	})
}

// deliver waits for the mail's turn, unless that is far away, and hands it over.
func (r Runner) deliver(ctx, stopping context.Context, j deliver) error {
	at, due, err := r.Service.Turn(ctx, j.DraftID, j.Index)
	if err != nil || !due {
		return err
	}
	wait := time.Until(at)
	if wait > reviewcontrol.WaitInLine {
		return river.JobSnooze(wait - reviewcontrol.WaitInLine/2) // jobs wake up in steps of a few seconds
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stopping.Done():
		case <-ctx.Done():
		}
	}
	if stopping.Err() != nil || ctx.Err() != nil {
		return river.JobSnooze(max(time.Until(at), 0))
	}
	again, err := r.Service.Deliver(ctx, j.DraftID, j.Index)
	if err == nil && again > 0 {
		return river.JobSnooze(again)
	}
	return err
}

// worker runs the jobs of a kind, each with a span and in the metrics of calls.
type worker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	run     endpoint.Endpoint
	timeout time.Duration
}

func work[T river.JobArgs](do func(context.Context, T) error) *worker[T] {
	var kind T
	return &worker[T]{run: telemetry.Endpoint("job." + kind.Kind())(func(ctx context.Context, job any) (any, error) {
		err := do(ctx, job.(*river.Job[T]).Args)
		var later *river.JobSnoozeError
		if errors.As(err, &later) {
			return later, nil
		}
		return nil, err
	})}
}

// Timeout implements river.Worker; 0 is the client's.
func (w *worker[T]) Timeout(*river.Job[T]) time.Duration { return w.timeout }

// Work implements river.Worker.
func (w *worker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	later, err := w.run(ctx, job)
	if err != nil {
		return err
	}
	if later, ok := later.(*river.JobSnoozeError); ok {
		return later
	}
	return nil
}

// patient is the wait after a job failed: a second at first, doubling. A job that has failed
// 25 times is given up, and then missed by tend.
type patient struct{}

// NextRetry implements river.ClientRetryPolicy.
func (patient) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(min(time.Second<<min(max(job.Attempt-1, 0), 10), longestRetry))
}

// What misses a job. Each statement reads the jobs that are not done once.
const (
	missingIntents = `SELECT draft_id FROM review_control.reviews WHERE status = 'draft' AND changed_at < now() - make_interval(secs => $1)
		AND draft_id NOT IN (SELECT (args ->> 'draft_id')::bigint FROM review_control.river_job WHERE kind = 'complete_queue' AND finalized_at IS NULL)`
	missingFinishes = `SELECT draft_id FROM review_control.reviews r WHERE status = 'approved' AND changed_at < now() - make_interval(secs => $1)
		AND EXISTS (SELECT FROM review_control.targets t WHERE t.draft_id = r.draft_id AND choice = 'approved' AND progress = '')
		AND draft_id NOT IN (SELECT (args ->> 'draft_id')::bigint FROM review_control.river_job WHERE kind = 'finish_review' AND finalized_at IS NULL)`
	missingSyncs = `SELECT draft_id FROM review_control.reviews WHERE synced < version AND status <> 'draft' AND changed_at < now() - make_interval(secs => $1)
		AND draft_id NOT IN (SELECT (args ->> 'draft_id')::bigint FROM review_control.river_job WHERE kind = 'sync_draft' AND finalized_at IS NULL)`
	missingImports = `SELECT id FROM review_control.imports WHERE status IN ('waiting', 'running') AND at < now() - make_interval(secs => $1)
		AND id NOT IN (SELECT (args ->> 'import_id')::bigint FROM review_control.river_job WHERE kind = 'read_import' AND finalized_at IS NULL)`
	// EXCEPT, because there may be hundreds of thousands: whatever the planner knows of them it
	// reads each side once, where NOT IN and NOT EXISTS may look through all jobs for each mail.
	missingDeliveries = `SELECT t.draft_id, t.position FROM review_control.reviews r JOIN review_control.targets t USING (draft_id)
		WHERE r.status = 'approved' AND t.progress IN ('queued', 'sending')
		EXCEPT SELECT (args ->> 'draft_id')::bigint, (args ->> 'index')::int FROM review_control.river_job WHERE kind = 'deliver' AND finalized_at IS NULL`
)

// Tend adds the jobs that are missing: those that failed too often, or were lost with
// whatever else an operator did to the table of jobs.
func (s *Store) Tend(ctx context.Context) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		for _, missing := range []struct {
			sql string
			job func(reviewcontrol.ID) river.JobArgs
		}{
			{missingIntents, func(id reviewcontrol.ID) river.JobArgs { return completeQueue{id} }},
			{missingFinishes, func(id reviewcontrol.ID) river.JobArgs { return finishReview{id} }},
			{missingSyncs, func(id reviewcontrol.ID) river.JobArgs { return syncDraft{id} }},
			{missingImports, func(id reviewcontrol.ID) river.JobArgs { return readImport{id} }},
		} {
			ids, err := collect(ctx, tx, pgx.RowTo[reviewcontrol.ID], missing.sql, overdue.Seconds())
			if err != nil {
				return err
			}
			for _, id := range ids {
				if _, err := s.jobs.InsertTx(ctx, tx, missing.job(id), nil); err != nil {
					return err
				}
			}
		}
		places, err := collect(ctx, tx, pgx.RowToStructByPos[place], missingDeliveries)
		if err != nil {
			return err
		}
		byDraft := map[reviewcontrol.ID][]int{}
		for _, p := range places {
			byDraft[p.Draft] = append(byDraft[p.Draft], p.Index)
		}
		for id, indexes := range byDraft {
			if err := s.addDeliveries(ctx, tx, id, indexes); err != nil {
				return err
			}
		}
		return nil
	})
}
