// Package orders is the operators' pages about orders: the list, an order with what may be done to it, and whether the
// ledger balances. It refuses to judge: what may happen is the Service's to say.
//
// What an operator does takes two pages: one that asks and shows what it is about, and one that does it. The form of the
// first carries the version of the order that was shown, and the Service refuses when the order has moved since. The audit
// log keeps who has done what, and who has taken orders away as a file.
package orders

import (
	"embed"
	"html/template"
	"net/http"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
)

//go:embed pages/*.html pages/*.json assets
var files embed.FS

// The role that every page needs, and the addresses of the lists.
const (
	admin            = "admin"
	ordersPath       = "/admin/orders"
	conservationPath = ordersPath + "/conservation"
)

// Pages are the pages about orders.
type Pages struct {
	service *payments.Service
	now     func() time.Time
	site    *web.Site
}

// New returns the pages; site makes their site, below the service's own.
func New(service *payments.Service, now func() time.Time, site func(web.Options) (*web.Site, error)) (*Pages, error) {
	s, err := site(web.Options{Files: files, Folder: "orders", Funcs: template.FuncMap{"won": won, "status": statusBadge,
		"attention": attentionBadge,
		"deposit":   depositBadge, "refund": refundBadge, "notice": noticeBadge, "outcome": outcomeBadge, "happened": happened, "env": envBadge,
		// What is of another environment than all the rest says so.
		"elsewhere": func(e credentials.Env) bool { return e != service.Env() }}})
	if err != nil {
		return nil, err
	}
	return &Pages{service, now, s}, nil
}

// Site has the words of Find.
func (p *Pages) Site() *web.Site { return p.site }

// Routes are the parts of the console that these pages are. Their assets are below the service's own.
func Routes() []tool.Route {
	return []tool.Route{
		{Prefix: ordersPath, Role: admin, Tab: "Admin", Title: "Orders", Position: 42},
		{Prefix: conservationPath, Role: admin, Tab: "Admin", Title: "Reconciliation", Position: 43},
	}
}

// Mount serves the pages and their assets.
// An address of a deposit names the order as well: the deposit is looked for among that order's. Each GET asks and changes nothing.
func (p *Pages) Mount(mux *http.ServeMux) {
	p.site.Mount(mux)
	p.site.Handle(mux, "GET /admin/orders", web.Role(admin), p.list)
	p.site.Handle(mux, "GET /admin/orders/export", web.Role(admin), p.export)
	p.site.Handle(mux, "GET /admin/orders/conservation", web.Role(admin), p.conservation)
	p.site.Handle(mux, "GET /admin/orders/conservation/export", web.Role(admin), p.exportAccounts)
	p.site.Handle(mux, "GET /admin/orders/{code}", web.Role(admin), p.order)
	p.site.Handle(mux, "POST /admin/orders/{code}/reconcile", web.Role(admin), p.reconcile)
	p.site.Handle(mux, "POST /admin/orders/{code}/notifications/{id}", web.Role(admin), p.redeliver)
	p.site.Handle(mux, "GET /admin/orders/{code}/refund", web.Role(admin), p.confirmRefund)
	p.site.Handle(mux, "POST /admin/orders/{code}/refund", web.Role(admin), web.Posted(p.refund))
	p.site.Handle(mux, "GET /admin/orders/{code}/resolve", web.Role(admin), p.confirmPage(resolving))
	p.site.Handle(mux, "POST /admin/orders/{code}/resolve", web.Role(admin), p.runPage(resolving))
	p.site.Handle(mux, "GET /admin/orders/{code}/deposits/{id}/apply", web.Role(admin), p.confirmPage(applying))
	p.site.Handle(mux, "POST /admin/orders/{code}/deposits/{id}/apply", web.Role(admin), p.runPage(applying))
	p.site.Handle(mux, "GET /admin/orders/{code}/deposits/{id}/return", web.Role(admin), p.confirmPage(returning))
	p.site.Handle(mux, "POST /admin/orders/{code}/deposits/{id}/return", web.Role(admin), p.runPage(returning))
	p.site.Handle(mux, "GET /admin/orders/{code}/deposits/{id}/returned", web.Role(admin), p.confirmPage(returned))
	p.site.Handle(mux, "POST /admin/orders/{code}/deposits/{id}/returned", web.Role(admin), p.runPage(returned))
}

// back goes to an order and says what was done, or why it was not.
// E_DB is told there, too: the provider did not answer, and the order's page shows how it stands.
func back(w http.ResponseWriter, r *http.Request, code, done string, err error) error {
	return web.Back(w, r, ordersPath+"/"+code, done, err, fault.Conflict, fault.Validation, fault.DB)
}

// depositOf is the deposit that the address names, of an order.
// E_NOT_FOUND for an id that is none, or another order's.
func depositOf(r *http.Request, a *order.Aggregate) (order.Deposit, error) {
	id, ok := schema.ParseID(r.PathValue("id"))
	for _, d := range a.Deposits {
		if ok && d.ID == id {
			return d, nil
		}
	}
	return order.Deposit{}, fault.New(fault.NotFound, "The order %s has no such deposit.", a.Order.Code)
}
