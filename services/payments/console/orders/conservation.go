package orders

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
)

const (
	// mostUnbalanced is how many orders that do not add up a page shows, mostSweeps how many reports.
	mostUnbalanced = 100
	mostSweeps     = 48
)

// conservationPage tells whether the books add up.
// The name is of conservation of money: what was received equals what is somewhere.
type conservationPage struct {
	Apps []payments.LedgerAccount
	// Sums are those of each environment, and Sum is that of the process.
	Sums []payments.LedgerAccount
	Sum  payments.LedgerAccount
	// Wrong are the orders that do not add up; none is the rule.
	Wrong []payments.LedgerAccount
	// Most is how many orders that do not add up are shown at most.
	Most   int
	Cases  payments.AttentionCounts
	Sweeps []payments.SweepReport
	Export string
}

// conservation shows whether the ledger balances: by app, order by order where it does not, and what the last sweeps
// have found.
// The reads are of several moments, so an order that moves meanwhile may show in one of them and not in another.
func (p *Pages) conservation(w http.ResponseWriter, r *http.Request) error {
	ctx, reports := r.Context(), p.service.Reports()
	page := conservationPage{Most: mostUnbalanced, Export: conservationPath + "/export"}
	var err error
	if page.Apps, page.Sums, err = p.accounts(r); err != nil {
		return err
	}
	for _, sum := range page.Sums {
		if sum.Env == p.service.Env() {
			page.Sum = sum
		}
	}
	if page.Wrong, err = reports.Unbalanced(ctx, mostUnbalanced); err != nil {
		return err
	}
	if page.Cases, err = reports.AttentionCounts(ctx, p.now().Add(-payments.StuckFor)); err != nil {
		return err
	}
	if page.Sweeps, err = reports.Sweeps(ctx, mostSweeps); err != nil {
		return err
	}
	return p.site.Render(w, r, "conservation", web.Page{Title: i18n.T(ctx, "Reconciliation"), Wide: true, Data: page,
		Lead: i18n.T(ctx, "All that was received is somewhere: with an order, with an open case, or back with its payer.")})
}

// accounts are those of the apps, what does not add up first, and the sum of each environment: money of the sandbox is none.
// The sort is stable, so apps keep the order of the store otherwise.
func (p *Pages) accounts(r *http.Request) (apps, sums []payments.LedgerAccount, err error) {
	apps, err = p.service.Reports().Ledger(r.Context())
	slices.SortStableFunc(apps, func(a, b payments.LedgerAccount) int {
		switch {
		case a.Balanced() == b.Balanced():
			return 0
		case b.Balanced():
			return -1
		}
		return 1
	})
	for _, env := range []credentials.Env{credentials.Production, credentials.Sandbox} {
		sum := payments.LedgerAccount{Env: env}
		for _, a := range apps {
			if a.Env == env {
				sum = sum.Add(a)
			}
		}
		if sum.Orders > 0 || env == p.service.Env() { // a program finds a sum of each export
			sums = append(sums, sum)
		}
	}
	return apps, sums, err
}

// accountColumns is the header of the export of accounts; programs read it, so that names stay and new ones come at the end.
var accountColumns = []string{"app", "order", "orders", "adds_up", "received", "applied", "open", "being_returned", "returned",
	"reversed", "gap", "paid",
	"refunded", "refunds_done", "pending", "refunds_pending", "env"}

// exportAccounts answers the orders that do not add up, the apps, and their sums as CSV.
// That somebody takes it away is in the audit log before the first byte (pay.conservation.export).
func (p *Pages) exportAccounts(w http.ResponseWriter, r *http.Request) error {
	apps, sums, err := p.accounts(r)
	if err != nil {
		return err
	}
	wrong, err := p.service.Reports().Unbalanced(r.Context(), mostUnbalanced+1) // one more tells that there are more
	if err != nil {
		return err
	}
	more := len(wrong) > mostUnbalanced
	if err := p.service.RecordExport(r.Context(), "pay.conservation.export", nil); err != nil {
		return err
	}
	// No app has this code: parentheses are no part of one.
	for i := range sums {
		sums[i].ServiceCode = "(all)"
	}
	return web.Export(w, r, "conservation-"+p.now().UTC().Format("20060102-150405"), accountColumns,
		func(row func(cells ...string) error) error {
			for _, a := range slices.Concat(wrong[:min(len(wrong), mostUnbalanced)], apps, sums) {
				cells := []string{a.ServiceCode, a.Code, strconv.FormatInt(a.Orders, 10), strconv.FormatBool(a.Balanced())}
				for _, n := range []int64{a.Received, a.Applied, a.Open, a.Returning, a.Returned, a.Reversed, a.Unaccounted(), a.Paid, a.Refunded,
					a.RefundsDone, a.Pending, a.RefundsPending} {
					cells = append(cells, strconv.FormatInt(n, 10))
				}
				if err := row(append(cells, string(a.Env))...); err != nil {
					return err
				}
			}
			if !more {
				return nil
			}
			return row(fmt.Sprintf("NOT COMPLETE: an export has the newest %d of the orders that do not add up.", mostUnbalanced))
		})
}

// Took is how long a sweep took, as people read it.
func (conservationPage) Took(r payments.SweepReport) string {
	if took := r.EndedAt.Sub(r.StartedAt).Round(time.Second); took > 0 {
		return took.String()
	}
	return "<1s"
}
