package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	reviewcontrol "hub.internal/services/review-control"
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
	Search string
	After  int
	// Alone is the page of one target: only forms say so.
	Alone bool
}

// queryOf reads an address or the field of a form; what it does not know is left out.
func queryOf(v url.Values) targetQuery {
	q := targetQuery{
		Choice: reviewcontrol.Choice(v.Get("decision")), State: reviewcontrol.DeliveryState(v.Get("delivery")),
		Search: reviewcontrol.Shorten(strings.TrimSpace(v.Get("q")), maxSearch), After: -1, Alone: v.Get("alone") == "1",
	}
	if !slices.Contains([]reviewcontrol.Choice{reviewcontrol.Pending, reviewcontrol.Approve, reviewcontrol.Reject}, q.Choice) {
		q.Choice = ""
	}
	if !slices.Contains(deliveryStates, q.State) {
		q.State = reviewcontrol.NotDue
	}
	if n, err := strconv.Atoi(v.Get("after")); err == nil && n >= 0 {
		q.After = n
	}
	return q
}

// deliveryStates are what a mail can be looked for by.
var deliveryStates = []reviewcontrol.DeliveryState{
	reviewcontrol.Queued, reviewcontrol.Sending, reviewcontrol.Delivered, reviewcontrol.Failed,
	reviewcontrol.Changed, reviewcontrol.Suppressed, reviewcontrol.Unknown,
}

func (q targetQuery) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{"decision": string(q.Choice), "delivery": string(q.State), "q": q.Search} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if q.After >= 0 {
		v.Set("after", strconv.Itoa(q.After))
	}
	return v
}

// Encode is the query for the field of a form.
func (q targetQuery) Encode() string {
	v := q.values()
	if q.Alone {
		v.Set("alone", "1")
	}
	return v.Encode()
}

// page is the address of the page with that query.
func (q targetQuery) page(id reviewcontrol.ID, index int) string {
	if q.Alone && index >= 0 {
		return fmt.Sprintf("/drafts/%s/targets/%d", id, index)
	}
	return withQuery("/drafts/"+id.String(), q.values())
}

// first is the address of the first page of what is asked for.
func (q targetQuery) first(id reviewcontrol.ID) string {
	q.After = -1
	return q.page(id, -1)
}

// at is the address of the page where it shows the target.
func (q targetQuery) at(id reviewcontrol.ID, index int) string {
	return q.page(id, index) + "#t-" + strconv.Itoa(index)
}

// Filtered tells that not all targets are asked for.
func (q targetQuery) Filtered() bool { return q.Choice != "" || q.State != "" || q.Search != "" }
