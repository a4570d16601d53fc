package main

// deposit is a row of deposit_transaction: money that moved on a brand's account.
type deposit struct {
	id, brand       int64
	kind            string
	amount, balance int64 // hundredths
	created         stamp
}

// A ledger carries what a brand's next deposit depends on. It is the one table whose
// rows are not independent: a balance is the one before plus an amount. The order of
// the balances is that of (created_at, id), which is not always that of the ids.
type ledger struct {
	plan    *plan
	brands  []account          // by brand id - 1
	delayed map[int64]*deposit // by brand: booked already, but its id comes later
}

// account is the balance of one brand.
type account struct {
	// In hundredths; last is the time of the newest transaction, and count how many there were.
	balance int64
	last    stamp
	count   uint32
}

// newLedger opens an account for each brand, empty.
func newLedger(p *plan) *ledger {
	return &ledger{plan: p, brands: make([]account, p.brands), delayed: map[int64]*deposit{}}
}

// next answers the deposit with this id; ids have to come in order from 1.
func (l *ledger) next(id int64) deposit {
	brand, _ := l.plan.depositBrand.of(id)
	total := l.plan.depositBrand.count(brand)
	a := &l.brands[brand-1]
	ordinal := int64(a.count)
	a.count++

	// A late booking: the last row by id is older than the one before it.
	late := brand%17 == 3 && total >= 4
	switch {
	case late && ordinal == total-1:
		r := l.delayed[brand]
		delete(l.delayed, brand)
		r.id = id
		return *r
	case late && ordinal == total-2:
		older := l.book(brand, ordinal, a.last+(l.now(id)-a.last)/2)
		l.delayed[brand] = &older
		ordinal++
	}

	created := l.now(id)
	switch {
	case ordinal == 0:
	case late && ordinal == total-1: // stays newer than the late one
	case brand%11 == 4 && ordinal >= total-2, ordinal%9 == 5:
		created = a.last // booked together: the id decides
	case brand%23 == 9:
		created = created.whole()
		created = max(created, a.last)
	}
	r := l.book(brand, ordinal, created)
	r.id = id
	return r
}

// now grows with the id.
func (l *ledger) now(id int64) stamp {
	step := (today - opening) / stamp(l.plan.depositBrand.rows())
	d := roll(l.plan.seed, forDepositTime, id)
	return opening + step*stamp(id-1) + stamp(d.below(int64(step)))
}

// liter is the unit of the amounts, in hundredths.
const liter = 100

// book makes the next transaction of a brand, so that each balance follows from the one before.
// The amounts are bounded by the balance before, so that it seldom falls below nothing.
func (l *ledger) book(brand, ordinal int64, created stamp) deposit {
	a := &l.brands[brand-1]
	d := roll(l.plan.seed, forDeposit, brand<<24|ordinal)
	r := deposit{brand: brand, kind: "CHARGE", created: created}
	before := a.balance
	switch n := d.below(100); {
	case ordinal == 0 && brand%997 == 5: // a balance of up to 10^12
		r.amount = 999_999_999_999 * liter
	case ordinal == 0 || before < 50_000*liter || n < 22:
		r.amount = d.between(1, 500) * 10_000 * liter
	case brand%89 == 6 && n < 40: // more was taken than there was
		r.kind, r.amount = "ADJUST", -before-d.between(1, 9_000*liter)
	case n < 84:
		r.kind, r.amount = "SPEND", -d.between(1, before*3/10)
	case n < 86: // to exactly nothing
		r.kind, r.amount = "SPEND", -before
	case n < 93:
		r.kind, r.amount = "REFUND", d.between(100, 50_000*liter)
	case n < 96:
		r.kind, r.amount = "ADJUST", d.between(1, 10_000)
	default:
		r.kind, r.amount = "ADJUST", -d.between(1, 10_000*liter)
	}
	a.balance += r.amount
	a.last = created
	r.balance = a.balance
	return r
}

// values are those of the row, in the order of the table's columns.
func (r deposit) values() []any {
	return []any{r.id, r.brand, r.kind, cents(r.amount), cents(r.balance), micros(r.created)}
}
