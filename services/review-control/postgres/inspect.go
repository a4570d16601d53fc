package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/text"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/triage"
)

const (
	// uninspected pages by keyset pagination along the partial index targets_uninspected, which gets empty as the inspection goes on.
	uninspected = `SELECT ` + targetColumns + ` FROM review_control.targets
		WHERE draft_id = $1 AND inspected_hash = '' AND position > $2 ORDER BY position LIMIT $3`

	// Under the review's lock, so that no number is given twice.
	addVariant = `INSERT INTO review_control.variants (draft_id, number, digest, subject, placeholders, targets)
		SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4, 0 FROM review_control.variants WHERE draft_id = $1
		ON CONFLICT (draft_id, digest) DO NOTHING`
	// variantOf reads the number whoever has given it: this statement's INSERT, or one before.
	variantOf = `SELECT number FROM review_control.variants WHERE draft_id = $1 AND digest = $2`

	// keepInspected counts only rows that it has changed, so a batch that is kept twice counts once.
	keepInspected = `WITH kept AS (
			UPDATE review_control.targets t SET subject = x.subject, inspected_hash = x.hash, flags = x.flags, hints = x.hints, variant = x.variant
			FROM unnest($2::int[], $3::text[], $4::text[], $5::int[], $6::int[], $7::int[]) AS x (position, subject, hash, flags, hints, variant)
			WHERE t.draft_id = $1 AND t.position = x.position AND t.inspected_hash = '' RETURNING t.variant
		), counted AS (
			UPDATE review_control.variants v SET targets = v.targets + n.targets
			FROM (SELECT variant, count(*)::int AS targets FROM kept WHERE variant > 0 GROUP BY variant) n
			WHERE v.draft_id = $1 AND v.number = n.variant
		)
		UPDATE review_control.reviews SET inspected = inspected + (SELECT count(*) FROM kept) WHERE draft_id = $1`

	// What is left of each is counted among the undecided alone, by their index.
	variants = `SELECT number, digest, subject, placeholders, targets,
			coalesce(pending, 0) AS pending, coalesce(together, 0) AS together, coalesce(last_together, -1) AS last_together
		FROM review_control.variants v LEFT JOIN (
			SELECT variant, count(*) AS pending, count(*) FILTER (WHERE flags = 0) AS together,
				max(position) FILTER (WHERE flags = 0) AS last_together
			FROM review_control.targets WHERE draft_id = $1 AND choice = 'pending' AND variant > 0 GROUP BY variant
		) t ON t.variant = v.number
		WHERE draft_id = $1 AND targets > 1 ORDER BY targets DESC, number`
)

// Uninspected returns targets that were not inspected.
func (s *Store) Uninspected(ctx context.Context, id reviewcontrol.ID, after, limit int) ([]reviewcontrol.Target, error) {
	return targets(ctx, s.pool, uninspected, int64(id), after, limit)
}

// KeepInspected keeps the inspections of targets that have none yet.
// E_NOT_FOUND for a draft without a review. A batch costs one statement, and two more for each variant in it that the batch has not met.
func (s *Store) KeepInspected(ctx context.Context, id reviewcontrol.ID, batch []reviewcontrol.Inspected) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		if _, err := review(ctx, tx, id, ` FOR NO KEY UPDATE`); err != nil {
			return err
		}
		known := map[[32]byte]int{}
		positions, subjects, hashes := make([]int32, len(batch)), make([]string, len(batch)), make([]string, len(batch))
		flags, hints, numbers := make([]int32, len(batch)), make([]int32, len(batch)), make([]int32, len(batch))
		for i, x := range batch {
			positions[i], subjects[i], hashes[i] = int32(x.Index), text.Storable(x.Subject), x.Hash
			// Two columns: flags keep a mail out of what is decided together, hints do not.
			flags[i], hints[i] = int32(x.Flags&^triage.Hints), int32(x.Flags&triage.Hints)
			if x.Template == nil {
				continue
			}
			number, found := known[x.Template.Digest]
			if !found {
				placeholders := make([]string, len(x.Template.Placeholders))
				for j, name := range x.Template.Placeholders {
					placeholders[j] = text.Storable(name)
				}
				_, err := tx.Exec(ctx, addVariant, int64(id), x.Template.Digest[:], text.Storable(x.Template.Subject), placeholders)
				if err != nil {
					return err
				}
				if err := tx.QueryRow(ctx, variantOf, int64(id), x.Template.Digest[:]).Scan(&number); err != nil {
					return err
				}
				known[x.Template.Digest] = number
			}
			numbers[i] = int32(number)
		}
		_, err := tx.Exec(ctx, keepInspected, int64(id), positions, subjects, hashes, flags, hints, numbers)
		return err
	})
}

// Variants returns the variants of a draft, the largest first.
// A variant of one mail is none, and is left out.
func (s *Store) Variants(ctx context.Context, id reviewcontrol.ID) ([]reviewcontrol.Variant, error) {
	return collect(ctx, s.pool, pgx.RowToStructByName[reviewcontrol.Variant], variants, int64(id))
}

// Tally counts the targets that a filter finds.
// Choice, Flag and Variant of the filter are applied to the groups, not in SQL: the console shows the counts of the others beside the list
// that it filters by them. A variant that is no other's mails is one of its own where the filter names it.
func (s *Store) Tally(ctx context.Context, id reviewcontrol.ID, f reviewcontrol.TargetFilter) (reviewcontrol.Tally, error) {
	choice, flag, variant := f.Choice, f.Flag, f.Variant
	f.Choice, f.Flag, f.Variant, f.Search = "", 0, 0, text.Storable(f.Search)
	where, args := conditions(f, []any{int64(id), variant, reviewcontrol.NoVariant})
	type group struct {
		choice     reviewcontrol.Choice
		flags      triage.Flag
		suppressed bool
		variant    int
		count      int
	}
	groups, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (g group, err error) {
		err = row.Scan(&g.choice, &g.flags, &g.suppressed, &g.variant, &g.count)
		return g, err
	}, `SELECT choice, flags | hints, `+suppressedSince+`,
			CASE WHEN variant > 0 AND (variant = $2 OR variant IN (`+sharedVariants+`)) THEN variant WHEN inspected_hash <> '' THEN $3 ELSE 0 END,
			count(*)
		FROM review_control.targets WHERE draft_id = $1`+where+` GROUP BY 1, 2, 3, 4`, args...)
	t := reviewcontrol.Tally{Flags: map[triage.Flag]int{}, Choices: map[reviewcontrol.Choice]int{}, Variants: map[int]int{}}
	for _, g := range groups {
		if g.suppressed {
			g.flags |= triage.Suppressed
		}
		ofChoice, ofFlag, ofVariant := choice == "" || g.choice == choice, g.flags.Has(flag), variant == 0 || g.variant == variant
		if ofFlag && ofVariant {
			t.Choices[g.choice] += g.count
		}
		if ofChoice && ofVariant {
			for _, one := range g.flags.Each() {
				t.Flags[one] += g.count
			}
		}
		if ofChoice && ofFlag {
			t.Variants[g.variant] += g.count
		}
		if ofChoice && ofFlag && ofVariant {
			t.Found += g.count
		}
	}
	return t, err
}
