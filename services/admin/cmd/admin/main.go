// Command admin is the service that keeps menus and the pages that agents write.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/services/admin"
	"hub.internal/services/admin/auditlog"
	"hub.internal/services/admin/auth"
	"hub.internal/services/admin/console"
	"hub.internal/services/admin/console/table"
	"hub.internal/services/admin/jobs"
	"hub.internal/services/admin/overview"
	"hub.internal/services/admin/postgres"
	"hub.internal/services/admin/query"
	"hub.internal/services/admin/reviewcontrol"
)

// settings is the environment of admin serve.
type settings struct {
	service.Settings
	CatalogFile string `env:"HUB_CATALOG" envDefault:"deploy/catalog.json"`
	// AuditURL names the role that reads the audit log, and no other does.
	AuditURL config.Secret `env:"HUB_AUDIT_URL,required,notEmpty"`
	// TraceURL is where people look at traces, with {trace} for the id; the log links to it.
	TraceURL string `env:"HUB_TRACE_URL"`
}

var program = service.Program[settings]{Name: "admin", Short: "The service that keeps menus and the pages that agents write",
	Migrate: migrate, Manifest: manifest, Build: build}

// manifest is what the service tells the gateway; it opens nothing.
func manifest() tool.Manifest {
	return admin.Manifest(overview.Operations(nil), append(console.Routes(), overview.Routes()...)...)
}

func main() { os.Exit(program.Main()) }

func build(h *service.Host, s settings) error {
	catalog, err := admin.LoadCatalog(s.CatalogFile)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	store := postgres.New(h.Store())
	svc := admin.New(admin.Config{Store: store, Fixed: admin.Fixed(catalog.Manifests)})
	pages, err := console.New(svc, h.Keys(), h.Logger())
	if err != nil {
		return err
	}
	h.Ready("write store", store.Ready)
	h.Reap(store.Keys())
	h.Tools(admin.Tools(svc)...)
	h.Operations(admin.Operations(svc)...)
	h.Pages(pages)
	return watch(h, s, auditlog.OwnersIn(catalog))
}

// watch hands over what is about the audit log: its pages, its roll-ups and its end, and who recorded what is not his.
func watch(h *service.Host, s settings, owners auditlog.Owners) error {
	if at, err := url.Parse(s.TraceURL); s.TraceURL != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" ||
		!strings.Contains(s.TraceURL, overview.TracePlace)) {
		return fmt.Errorf("configuration: HUB_TRACE_URL has to be an http(s) address with %s in it", overview.TracePlace)
	}
	log, err := postgres.OpenReader(s.AuditURL.Reveal(), time.Now)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	h.Check("audit reader", "HUB_AUDIT_URL", func(ctx context.Context) error { _, err := log.Retention(ctx); return err })
	h.OnStop("audit reader", func(context.Context) error { log.Close(); return nil })
	pages, err := overview.New(overview.Config{Log: log, TraceURL: s.TraceURL, Draw: line, Owners: owners, Records: h.Audit(),
		Backlog: reviewcontrol.New(h.Neighbour("review-control")).Backlog,
		Source:  query.New(h.Neighbour("query")).Health, Names: auth.New(h.Neighbour("auth")).Names}, h.Site)
	if err != nil {
		return err
	}
	h.Pages(pages)
	h.Operations(overview.Operations(pages)...)
	h.Work(jobs.Runner(log, h.Logger()))
	h.Go("gauges", log.Watch(owners).Sample(h.Logger()).Run)
	return nil
}

// line draws as the sparklines of pages are drawn.
func line(values []float64) overview.Line {
	if s := table.NewSeries(values); s != nil {
		return s
	}
	return nil
}

// migrate also tells the store how long the audit log is kept, if it is told: only its owner may. Who is not told keeps what was said, so
// that a migration by hand drops no months.
func migrate(ctx context.Context, ownerURL string) error {
	s, err := config.Load[struct {
		Retention *config.Days `env:"HUB_AUDIT_RETENTION"`
	}](os.Environ())
	if err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, ownerURL); err != nil || s.Retention == nil {
		return err
	}
	before, err := postgres.Retain(ctx, ownerURL, int(*s.Retention))
	if err == nil && before != int(*s.Retention) {
		fmt.Fprintf(os.Stderr, "the audit log is kept for %s, by HUB_AUDIT_RETENTION; it was %s\n", *s.Retention, config.Days(before))
	}
	return err
}
