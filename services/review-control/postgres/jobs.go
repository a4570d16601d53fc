package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/jobs"
	reviewcontrol "hub.internal/services/review-control"
)

// The jobs that transactions of this store leave behind; package jobs runs them.
type (
	// CompleteQueue ends a call of queue_for_review that did not end by itself.
	CompleteQueue struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
	}
	// InspectDraft finds out what a reviewer of a draft should look at.
	InspectDraft struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
	}
	// FinishReview makes the approved targets of an approved draft wait for their delivery.
	FinishReview struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
	}
	// SyncDraft tells authoring what became of a review.
	SyncDraft struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
	}
	// Deliver hands one mail over.
	Deliver struct {
		DraftID reviewcontrol.ID `json:"draft_id"`
		Index   int              `json:"index"`
	}
	// ReadImport reads a file into the suppression list.
	ReadImport struct {
		ImportID reviewcontrol.ID `json:"import_id"`
	}
	// AddMissing adds the jobs that are missing.
	AddMissing struct{}
)

// Kind implements jobs.Job.
func (CompleteQueue) Kind() string { return "complete_queue" }

// Kind implements jobs.Job.
func (FinishReview) Kind() string { return "finish_review" }

// Kind implements jobs.Job.
func (InspectDraft) Kind() string { return "inspect_draft" }

// Kind implements jobs.Job.
func (SyncDraft) Kind() string { return "sync_draft" }

// Kind implements jobs.Job.
func (Deliver) Kind() string { return "deliver" }

// Kind implements jobs.Job.
func (ReadImport) Kind() string { return "read_import" }

// Kind implements jobs.Job.
func (AddMissing) Kind() string { return "add_missing" }

// MailQueue is for what waits for an SMTP server: nothing else waits behind it.
const MailQueue = "mail"

// Queue implements jobs.InQueue.
func (Deliver) Queue() string { return MailQueue }

// overdue is how old what misses its job has to be.
const overdue = time.Minute

// What misses a job. Each statement reads the jobs that are not done once.
const (
	jobsOf         = `SELECT (args ->> 'draft_id')::bigint FROM review_control.river_job WHERE finalized_at IS NULL AND kind = `
	missingIntents = `SELECT draft_id FROM review_control.reviews WHERE status = 'draft' AND changed_at < now() - make_interval(secs => $1)
		AND draft_id NOT IN (` + jobsOf + `'complete_queue')`
	missingInspections = `SELECT draft_id FROM review_control.reviews
		WHERE status = 'in_review' AND inspected < target_count AND changed_at < now() - make_interval(secs => $1)
		AND draft_id NOT IN (` + jobsOf + `'inspect_draft')`
	missingFinishes = `SELECT draft_id FROM review_control.reviews r
		WHERE status = 'approved' AND changed_at < now() - make_interval(secs => $1) AND (leaves_at IS NULL OR leaves_at < now())
		AND EXISTS (SELECT FROM review_control.targets t WHERE t.draft_id = r.draft_id AND choice = 'approved' AND progress = '')
		AND draft_id NOT IN (` + jobsOf + `'finish_review')`
	missingSyncs = `SELECT draft_id FROM review_control.reviews
		WHERE synced < version AND status <> 'draft' AND changed_at < now() - make_interval(secs => $1)
		AND draft_id NOT IN (` + jobsOf + `'sync_draft')`
	missingImports = `SELECT id FROM review_control.imports WHERE status IN ('waiting', 'running') AND at < now() - make_interval(secs => $1)
		AND id NOT IN (SELECT (args ->> 'import_id')::bigint FROM review_control.river_job WHERE kind = 'read_import' AND finalized_at IS NULL)`
	// EXCEPT, because there may be hundreds of thousands: whatever the planner knows of them it
	// reads each side once, where NOT IN and NOT EXISTS may look through all jobs for each mail.
	missingDeliveries = `SELECT t.draft_id, t.position AS index FROM review_control.reviews r JOIN review_control.targets t USING (draft_id)
		WHERE r.status = 'approved' AND t.progress IN ('queued', 'sending')
		EXCEPT SELECT (args ->> 'draft_id')::bigint, (args ->> 'index')::int FROM review_control.river_job
		WHERE kind = 'deliver' AND finalized_at IS NULL`
)

// AddMissingJobs adds the jobs that are missing: those that failed too often, or were lost with
// whatever else an operator did to the table of jobs.
func (s *Store) AddMissingJobs(ctx context.Context) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		var missing []jobs.Job
		for _, m := range []struct {
			sql string
			job func(reviewcontrol.ID) jobs.Job
		}{
			{missingIntents, func(id reviewcontrol.ID) jobs.Job { return CompleteQueue{id} }},
			{missingInspections, func(id reviewcontrol.ID) jobs.Job { return InspectDraft{id} }},
			{missingFinishes, func(id reviewcontrol.ID) jobs.Job { return FinishReview{id} }},
			{missingSyncs, func(id reviewcontrol.ID) jobs.Job { return SyncDraft{id} }},
			{missingImports, func(id reviewcontrol.ID) jobs.Job { return ReadImport{id} }},
		} {
			ids, err := collect(ctx, tx, pgx.RowTo[reviewcontrol.ID], m.sql, overdue.Seconds())
			if err != nil {
				return err
			}
			for _, id := range ids {
				missing = append(missing, m.job(id))
			}
		}
		deliveries, err := collect(ctx, tx, pgx.RowToStructByName[Deliver], missingDeliveries)
		if err != nil {
			return err
		}
		for _, d := range deliveries {
			missing = append(missing, d)
		}
		return s.jobs.Add(ctx, tx, missing...)
	})
}
