package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/text"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/triage"
)

// withQuery is the address of a page with a query, if there is one.
func withQuery(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// maxSearch bounds what is searched for, in characters.
const maxSearch = 200

// targetQuery is what of a draft a page shows, as its address has it.
type targetQuery struct {
	Choice reviewcontrol.Choice
	State  reviewcontrol.DeliveryState
	Flag   triage.Flag
	Search string
	// FlaggedFirst has what has a flag come first.
	FlaggedFirst bool
	// Variant is the number of the variant that mails are of; 0 is any, NoVariant those like no other.
	Variant int
	// After is the target behind which the list begins, by its index; -1 is its begin.
	After int
}

// queryOf reads an address or the field of a form; what it does not know is left out.
func queryOf(v url.Values) targetQuery {
	q := targetQuery{
		Choice: reviewcontrol.Choice(v.Get("decision")), State: reviewcontrol.DeliveryState(v.Get("delivery")),
		Search: text.Head(text.Storable(strings.TrimSpace(v.Get("q"))), maxSearch), After: -1,
	}
	if !slices.Contains([]reviewcontrol.Choice{reviewcontrol.Pending, reviewcontrol.Approve, reviewcontrol.Reject}, q.Choice) {
		q.Choice = ""
	}
	if !slices.Contains(deliveryStates, q.State) {
		q.State = reviewcontrol.NotDue
	}
	q.Flag = triage.ParseFlag(v.Get("flag"))
	q.FlaggedFirst = v.Get("order") == flaggedFirst
	if n, err := strconv.Atoi(v.Get("variant")); err == nil && n >= reviewcontrol.NoVariant && n <= reviewcontrol.MaxIndex {
		q.Variant = n
	}
	if n, err := strconv.Atoi(v.Get("after")); err == nil && n >= 0 {
		q.After = n
	}
	return q
}

// flaggedFirst is the order in which what has a flag comes first.
const flaggedFirst = "flagged"

// Order is how the list is ordered, as the address has it.
func (q targetQuery) Order() string {
	if q.FlaggedFirst {
		return flaggedFirst
	}
	return ""
}

// deliveryStates are what a mail can be looked for by.
var deliveryStates = []reviewcontrol.DeliveryState{
	reviewcontrol.Queued, reviewcontrol.Sending, reviewcontrol.Delivered, reviewcontrol.Failed,
	reviewcontrol.Changed, reviewcontrol.Suppressed, reviewcontrol.Unknown,
}

// values are the query of an address, without what is empty.
func (q targetQuery) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		"decision": string(q.Choice), "delivery": string(q.State), "flag": q.Flag.Name(), "q": q.Search, "order": q.Order(),
	} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if q.Variant != 0 {
		v.Set("variant", strconv.Itoa(q.Variant))
	}
	if q.After >= 0 {
		v.Set("after", strconv.Itoa(q.After))
	}
	return v
}

// Encode is the query for the field of a form.
func (q targetQuery) Encode() string { return q.values().Encode() }

// page is the address of the draft with that query: it shows the first target that is left to decide.
func (q targetQuery) page(id reviewcontrol.ID) string {
	return withQuery("/drafts/"+id.String(), q.values())
}

// at is the address of the draft with that query where it shows a target.
func (q targetQuery) at(id reviewcontrol.ID, index int) string {
	return withQuery(fmt.Sprintf("/drafts/%s/targets/%d", id, index), q.values())
}

// Filtered tells that not all targets are asked for.
func (q targetQuery) Filtered() bool {
	return q.Choice != "" || q.State != "" || q.Flag != 0 || q.Variant != 0 || q.Search != ""
}

// filter is the query as the Service takes it.
func (q targetQuery) filter() reviewcontrol.TargetFilter {
	return reviewcontrol.TargetFilter{
		Choice: q.Choice, State: q.State, Flag: q.Flag, Variant: q.Variant, Search: q.Search,
		FlaggedFirst: q.FlaggedFirst, After: q.After, Limit: targetsOnPage,
	}
}
