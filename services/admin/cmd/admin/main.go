// Command admin is the service that keeps menus and the pages that agents write.
package main

import (
	"fmt"
	"os"

	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/services/admin"
	"hub.internal/services/admin/console"
	"hub.internal/services/admin/postgres"
)

type settings struct {
	service.Settings
	CatalogFile string `env:"HUB_CATALOG" envDefault:"deploy/catalog.json"`
}

var program = service.Program[settings]{Name: "admin", Short: "The service that keeps menus and the pages that agents write",
	Migrate: postgres.Migrate, Manifest: manifest, Build: build}

func manifest() tool.Manifest { return admin.Manifest(console.Routes()...) }

func main() { os.Exit(program.Main()) }

func build(h *service.Host, s settings) error {
	fixed, err := admin.LoadFixed(s.CatalogFile)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	store := postgres.New(h.Store())
	svc := admin.New(admin.Config{Store: store, Fixed: fixed})
	pages, err := console.New(svc, h.Keys(), h.Logger())
	if err != nil {
		return err
	}
	h.Ready("write store", store.Ready)
	h.Reap(store.Keys())
	h.Tools(admin.Tools(svc)...)
	h.Operations(admin.Operations(svc)...)
	h.Pages(pages)
	return nil
}
