// Command payments is the service that takes money for Connected Apps, and the commands to manage what providers know it by.
package main

import (
	"os"

	"hub.internal/pkg/rpc"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
	"hub.internal/services/payments/console"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/postgres"
)

// program is what the shell of all services needs to know of this one.
var program = service.Program[settings]{Name: "payments",
	Short:   "The service that takes money for Connected Apps, and the commands to manage what providers know it by",
	Migrate: postgres.Migrate, Manifest: manifest, Build: build,
	// The jobs have connections beside those of the calls.
	Connections: func(settings) int { return 30 }}

// manifest is what payments tells the gateway. It is made without a store, so that `payments manifest` needs none.
func manifest() tool.Manifest {
	m := rpc.Manifest("payments", credentials.Tools(credentials.New(credentials.Config{})), console.Operations(nil), console.Routes()...).
		WithRoutes(api.Routes(payments.New(payments.Config{}))...)
	m.Notifications = api.Notifications()
	return m
}

func main() { os.Exit(service.Execute(root(os.Environ()))) }
