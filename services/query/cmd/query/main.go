// Command query is the service that answers the query tools from the source database.
package main

import (
	"os"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/process"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
)

// commandLine is serve, migrate and manifest. Query has no tables but the audit log that it appends to,
// and its manifest shows the default limits.
var commandLine = process.Program{
	Name: name, Short: "The service that answers the query tools from the source database",
	Serve: serve, Migrate: audit.Migrate,
	Manifest: func() any { return tool.ManifestOf(name, query.Tools(query.New(query.Config{}))) },
}

func main() { os.Exit(commandLine.Main()) }
