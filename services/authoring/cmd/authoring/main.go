// Command authoring is the service that keeps segments and drafts.
package main

import (
	"os"

	"hub.internal/pkg/service"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/postgres"
	"hub.internal/services/authoring/query"
)

// program is what the shell of all services needs to know of this one.
var program = service.Program[settings]{
	Name: "authoring", Short: "The service that keeps segments and drafts",
	Migrate: postgres.Migrate, Manifest: authoring.Manifest, Build: build,
	// Nearly all of the heap is bodies of calls, which hold no pointers: collecting them
	// early costs little time and halves what a large one leaves behind.
	GCPercent: 50,
}

func main() { os.Exit(program.Main()) }

// build puts the rooms together: the store, the client of query, and the Service behind its tools and operations.
func build(h *service.Host, s settings) error {
	store := postgres.New(h.Store())
	svc := authoring.New(authoring.Config{Store: store, Source: query.New(h.Neighbour("query")), PublicURL: s.PublicURL, Policy: s.Recipients,
		ContactPause: s.ContactPause})
	h.Ready("write store", store.Ready)
	h.Reap(store.Keys())
	h.Tools(authoring.Tools(svc)...)
	h.Operations(authoring.Operations(svc)...)
	return nil
}
