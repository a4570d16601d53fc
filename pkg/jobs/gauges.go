package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/telemetry"
)

// countedJobs bounds what is counted of a queue.
const countedJobs = 10_000

// sample is how a service's queues are, by queue: hub.jobs.lag, hub.jobs.due, hub.jobs.running and hub.jobs.discarded;
// and hub.jobs.leader, without which nothing that is scheduled becomes due.
func (r Runner) sample() *telemetry.Sample {
	return &telemetry.Sample{Name: "jobs", Logger: r.Logger, Gauges: []telemetry.Gauge{
		{Name: "hub.jobs.lag", Unit: "s", Description: "How long the job has waited that should have run first; 0 without one."},
		{Name: "hub.jobs.due", Description: "Jobs that should run now and do not yet; at most 10,000 are counted."},
		{Name: "hub.jobs.running", Description: "Jobs that run, on all replicas."},
		{Name: "hub.jobs.discarded", Description: "Jobs that were given up in the last seven days; at most 10,000 are counted."},
		{Name: "hub.jobs.leader", Description: "1 while one of the replicas leads: it schedules jobs and rescues lost ones."},
	}, Ask: r.look}
}

// queueState is a queue at a moment.
type queueState struct {
	Queue                   string
	Lag                     float64
	Due, Running, Discarded int64
}

// look reads one end of River's index (state, queue, priority, scheduled_at) for each state and priority of a queue.
func (r Runner) look(ctx context.Context) ([]telemetry.Reading, error) {
	queues := []string{Default}
	for _, q := range r.Queues {
		queues = append(queues, q.Name)
	}
	schema := pgx.Identifier{r.Schema}.Sanitize()
	states, err := postgres.All(ctx, r.Pool, pgx.RowToStructByName[queueState], `
		SELECT q AS queue,
			coalesce((SELECT extract(epoch FROM now() - min(oldest.scheduled_at))
				FROM unnest('{available,retryable,scheduled}'::`+schema+`.river_job_state[]) s, generate_series(1, 4) p, LATERAL (
					SELECT scheduled_at FROM `+schema+`.river_job j WHERE j.state = s AND j.queue = q AND j.priority = p AND j.scheduled_at <= now()
					ORDER BY j.scheduled_at LIMIT 1) oldest), 0)::float8 AS lag,
			(SELECT count(*) FROM unnest('{available,retryable,scheduled}'::`+schema+`.river_job_state[]) s, generate_series(1, 4) p, LATERAL (
				SELECT FROM `+schema+`.river_job j WHERE j.state = s AND j.queue = q AND j.priority = p AND j.scheduled_at <= now()
				LIMIT $2) due) AS due,
			(SELECT count(*) FROM (SELECT FROM `+schema+`.river_job j WHERE j.state = 'running' AND j.queue = q LIMIT $2) running) AS running,
			(SELECT count(*) FROM (SELECT FROM `+schema+`.river_job j WHERE j.state = 'discarded' AND j.queue = q LIMIT $2) discarded) AS discarded
		FROM unnest($1::text[]) q`, queues, countedJobs)
	if err != nil {
		return nil, err
	}
	leader, err := postgres.One(ctx, r.Pool, pgx.RowTo[float64],
		`SELECT count(*)::float8 FROM `+schema+`.river_leader WHERE name = 'default' AND expires_at > now()`)
	if err != nil {
		return nil, err
	}
	readings := []telemetry.Reading{{Gauge: "hub.jobs.leader", Value: leader}}
	for _, s := range states {
		of := []attribute.KeyValue{attribute.String("queue", s.Queue)}
		readings = append(readings, telemetry.Reading{Gauge: "hub.jobs.lag", Value: max(s.Lag, 0), Attributes: of},
			telemetry.Reading{Gauge: "hub.jobs.due", Value: float64(s.Due), Attributes: of},
			telemetry.Reading{Gauge: "hub.jobs.running", Value: float64(s.Running), Attributes: of},
			telemetry.Reading{Gauge: "hub.jobs.discarded", Value: float64(s.Discarded), Attributes: of})
	}
	return readings, nil
}
