package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"hub.internal/pkg/postgres"
)

const (
	// defaultWorkers is how many jobs of the queue Default run at once.
	defaultWorkers = 4
	// rescueRest is what a job's end may take on top of its time.
	rescueRest = 10 * time.Second
	// stopTakes is how long running jobs may go on when the process stops.
	stopTakes = 6 * time.Second
	// longestRetry bounds the wait after a job failed.
	longestRetry = 5 * time.Minute
	// retention is how long a job that is done is kept: what it did is in the service's own tables.
	retention = time.Hour
	// givenUpRetention is how long a job that was given up is kept, and counted (hub.jobs.discarded): somebody looks at its error.
	givenUpRetention = 7 * 24 * time.Hour
	// pooledPoll is the time between two looks for jobs where nobody is told of them.
	pooledPoll = 250 * time.Millisecond
	// maxInstance is the longest name that River takes.
	maxInstance = 100
)

// Queue is a line of jobs beside the queue Default: nothing else waits behind them.
type Queue struct {
	Name string
	// Workers is how many of its jobs run at once.
	Workers int
	// Pause is the time between two looks for jobs; each fetches as many as there are idle
	// workers. 0 is River's 100 ms.
	Pause time.Duration
}

// Periodic adds a job from time to time, on one replica, and at once when that one takes the lead.
type Periodic struct {
	Every time.Duration
	Job   Job
}

// Runner runs the jobs of a service.
type Runner struct {
	Pool *pgxpool.Pool
	// Service is the discovery name, Schema the service's own.
	Service, Schema string
	Kinds           []Kind
	Queues          []Queue
	Periodic        []Periodic
	// Timeout bounds one run of a job that does not say otherwise; 0 means a minute.
	Timeout time.Duration
	// Instance names the process among its replicas, and is the same when it starts again:
	// it takes over what it had in hand when it died. Empty takes over nothing.
	Instance string
	Logger   *slog.Logger
}

// Run works until ctx ends; then running jobs finish, for a few seconds. It waits for a store that
// is away, also at the start.
func (r Runner) Run(ctx context.Context) error {
	r.Instance = r.Instance[:min(len(r.Instance), maxInstance)]
	if r.Timeout == 0 {
		r.Timeout = time.Minute
	}
	sampling, stop := context.WithCancel(ctx)
	var sampled sync.WaitGroup
	sampled.Go(func() { _ = r.sample().Run(sampling) }) // which returns no error
	defer sampled.Wait()
	defer stop()
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		client, err := r.client()
		if err != nil {
			return err
		}
		failed := r.takeOver(ctx)
		if failed == nil {
			failed = client.Start(context.WithValue(ctx, stopping{}, ctx))
		}
		if failed == nil {
			<-client.Stopped()
			failed = errors.New("the jobs' client stopped by itself")
		}
		if ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "jobs do not run yet", "error", postgres.Explain(failed, r.Service))
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
	table := pgx.Identifier{r.Schema, "river_job"}.Sanitize()
	const mine = `state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1`
	for _, k := range r.Kinds {
		if k.abandoned == nil {
			continue
		}
		rows, err := r.Pool.Query(ctx, `SELECT args FROM `+table+` WHERE kind = $2 AND `+mine, r.Instance, k.name)
		if err != nil {
			return err
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			return err
		}
		for _, args := range left {
			if err := k.abandoned(ctx, args); err != nil {
				return err
			}
		}
	}
	if _, err := r.Pool.Exec(ctx, `UPDATE `+table+` SET state = 'available', scheduled_at = now() WHERE `+mine, r.Instance); err != nil {
		return err
	}
	// The others need not wait for the end of its term either.
	_, err := r.Pool.Exec(ctx, `DELETE FROM `+pgx.Identifier{r.Schema, "river_leader"}.Sanitize()+` WHERE leader_id = $1`, r.Instance)
	return err
}

// client is a new one each time: one whose start failed is not started again.
func (r Runner) client() (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	for _, k := range r.Kinds {
		k.add(workers)
	}
	pooled, poll := postgres.Pooled(r.Pool), time.Duration(0) // River's own second
	if pooled {
		poll = pooledPoll
	}
	queues := map[string]river.QueueConfig{Default: {MaxWorkers: defaultWorkers, FetchPollInterval: poll}}
	for _, q := range r.Queues {
		queues[q.Name] = river.QueueConfig{MaxWorkers: q.Workers, FetchCooldown: q.Pause}
		if pooled {
			queues[q.Name] = river.QueueConfig{MaxWorkers: q.Workers, FetchCooldown: q.Pause, FetchPollInterval: max(poll, q.Pause)}
		}
	}
	periodic := make([]*river.PeriodicJob, len(r.Periodic))
	for i, p := range r.Periodic {
		periodic[i] = river.NewPeriodicJob(river.PeriodicInterval(p.Every), func() (river.JobArgs, *river.InsertOpts) {
			return p.Job, &river.InsertOpts{Queue: queueOf(p.Job)}
		}, &river.PeriodicJobOpts{RunOnStart: true})
	}
	return river.NewClient(riverpgxv5.New(r.Pool), &river.Config{
		ID: r.Instance, Schema: r.Schema, Logger: r.Logger, Workers: workers, Queues: queues, PeriodicJobs: periodic,
		JobTimeout: r.Timeout, RescueStuckJobsAfter: r.Timeout + rescueRest, SoftStopTimeout: stopTakes, RetryPolicy: retryPolicy{},
		CompletedJobRetentionPeriod: retention, CancelledJobRetentionPeriod: retention, DiscardedJobRetentionPeriod: givenUpRetention,
		// Behind a pooler nobody hears that there is a job: it is looked for more often.
		PollOnly: pooled,
		// Only an owner may rebuild an index.
		ReindexerIndexNames: []string{},
	})
}

// retryPolicy is the wait after a job failed: a second at first, doubling. River gives a job up that
// has failed 25 times; what then misses its job is for a Periodic one to find.
type retryPolicy struct{}

// NextRetry implements river.ClientRetryPolicy.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(min(time.Second<<min(max(job.Attempt-1, 0), 10), longestRetry))
}
