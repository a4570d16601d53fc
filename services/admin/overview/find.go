package overview

import (
	"context"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin/auditlog"
)

// mostFound is how many rows of a request the search in the header shows.
const mostFound = 10

// Operations declares what the gateway asks of the pages beside themselves.
func Operations(o *Overview) []rpc.Operation {
	return []rpc.Operation{web.FindOperation(func() *web.Site { return o.site }, o.find)}
}

// find returns the rows of the log that a request has left, for an administrator who has its id. What somebody looks for is in the log
// itself, where it was found.
func (o *Overview) find(ctx context.Context, u web.User, text string) (found web.FindResponse, err error) {
	if !u.Is(administrator) || !caller.ValidRequestID(text) {
		return found, nil
	}
	f := auditlog.Filter{RequestID: text}
	page, err := o.c.Log.Search(ctx, f, auditlog.Position{}, mostFound+1)
	if err != nil || len(page.Calls) == 0 {
		return found, err
	}
	o.c.Records.Queue(o.entry(ctx, "audit.search", len(page.Calls), map[string]string{"request": text}))
	hits := make([]web.Hit, len(page.Calls))
	for i, c := range page.Calls {
		hits[i] = web.Hit{Kind: i18n.T(ctx, "Audit log"), Title: c.Tool, Note: outcome(c.Outcome).Text, At: &page.Calls[i].At,
			Href: logPath + "/" + c.Position().String()}
	}
	found.Add(mostFound, hits...)
	return found, nil
}
