package nicepay

// The result codes of the vendor, as the list of codes in its manual has them.
const (
	codeDone      = "0000"
	codeCancelled = "2001"
	codeRefunded  = "2211"

	// Hub's own: the refund was made, and its payout came back; there was nothing to be paid back.
	codeReturned = "RETURNED"
	codeNotPaid  = "NOT_PAID"
)

// resultKind is what a result code means to a caller.
type resultKind int

const (
	kindUnknown    resultKind = iota // the vendor's own fault, or a code that nobody knows
	kindDone                         // it was done
	kindDuplicate                    // the id was used before: ask what became of it
	kindDefinite                     // refused, nothing has happened
	kindDrift                        // refused, since less is left than Hub thinks
	kindNotFound                     // there is no such payment
	kindNoPage                       // there is no such checkout
	kindPageClosed                   // the checkout is closed already
)

// checkoutKind says what a code means for a checkout. What the vendor refuses there has had no effect; its own faults are unknown.
func checkoutKind(code string) resultKind {
	switch code {
	case codeDone:
		return kindDone
	case "A127", "U112", "U324", "P015", "2156":
		return kindDuplicate
	case "P040", "P043":
		return kindNoPage
	case "P042", "U325":
		return kindPageClosed
	}
	if code == "" || providerFault(code) {
		return kindUnknown
	}
	return kindDefinite
}

// paymentKind says what a code means when a payment was asked for.
func paymentKind(code string) resultKind {
	switch code {
	case codeDone:
		return kindDone
	case "2012", "A118", "A243", "A251", "U107", "U111", "U122", "U126":
		return kindNotFound
	}
	return kindUnknown
}

// cancelKind says what a code means for a cancel. Money is at stake: only the codes that are known to be definite are. A code
// that the vendor adds later is unknown until it stands here, which costs a question, where to take it for a refusal could
// pay twice.
func cancelKind(code string) resultKind {
	switch code {
	case codeDone, codeCancelled, codeRefunded:
		return kindDone
	case "2013", "2015", "2156", "A127", "U112", "P015":
		return kindDuplicate
	case "2026", "2032", "U123":
		return kindDrift
	case "2012", "U122":
		return kindNotFound
	case "2003", "2010", "2011", "2014", "2016", "2017", "2018", "2019", "2020", "2023", "2024", "2025", "2027", "2028", "2029", "2030",
		"2031", "2033", "2052", "2151", "2152", "A101", "A102", "A106", "A114", "A115", "A116", "A117", "A122", "A147", "A224",
		"U100", "U102", "U103", "U104", "U105", "U108", "U109", "U110", "U118", "U119", "U120", "U124", "U125", "U127", "U128", "U130",
		"U131", "U132", "U304", "U305", "U308", "U312", "U313", "U315", "U318", "U319", "U320", "U321", "9000", "9001":
		return kindDefinite
	}
	return kindUnknown
}

// providerFault tells whether a code is about a fault within the vendor or behind it: what was asked for may have been done.
func providerFault(code string) bool {
	switch code {
	case "2000", "2159", "9002", "A110", "A226", "A299", "A300", "A304", "A306", "A400", "A401", "A402", "A403", "P026", "P027", "P101",
		"P102", "P103", "T001", "T002", "T003", "T004", "T005", "U302", "U303", "U322", "U501", "U503", "U504", "U506", "U507", "U508":
		return true
	}
	return false
}
