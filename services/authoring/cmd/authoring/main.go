// Command authoring is the service that keeps segments and drafts.
package main

import (
	"os"

	"hub.internal/pkg/process"
	"hub.internal/pkg/tool"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/postgres"
)

// name is the service's discovery name.
const name = "authoring"

var commandLine = process.Program{
	Name: name, Short: "The service that keeps segments and drafts",
	Serve: serve, Migrate: postgres.Migrate,
	Manifest: func() any { return tool.ManifestOf(name, authoring.Tools(authoring.New(authoring.Config{}))) },
}

func main() { os.Exit(commandLine.Main()) }
