// Command gateway is the edge of Hub.
package main

import (
	"os"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/service"
)

// program has no tables but the audit log that it appends to.
var program = service.Program[settings]{Name: "gateway", Short: "The edge of Hub", Migrate: audit.Migrate, Build: build,
	Connections: func(settings) int { return 4 }}

func main() { os.Exit(program.Main()) }
