// Command review-control is the service where people decide on mails, and that sends them.
package main

import (
	"os"

	"hub.internal/pkg/process"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/postgres"
)

// name is the service's discovery name.
const name = "review-control"

var commandLine = process.Program{
	Name: name, Short: "The service where people decide on mails, and that sends them",
	Serve: serve, Migrate: postgres.Migrate,
	Manifest: func() any { return reviewcontrol.Manifest(reviewcontrol.New(reviewcontrol.Config{})) },
}

func main() { os.Exit(commandLine.Main()) }
