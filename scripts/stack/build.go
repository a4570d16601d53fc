package main

import (
	"context"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localstack"
)

// build builds into bin/ each command of each service, this program, and what stands in for the world.
// A build that changes nothing is quick, since go's cache knows it.
func build(ctx context.Context, l layout, services inventory.Inventory) error {
	packages := append(localstack.Programs(services),
		inventory.ClientProgram, "./scripts/stack", "./scripts/gen", "./scripts/"+mailSink, "./scripts/"+echo)
	return localstack.Build(ctx, l.root, l.path("bin"), packages)
}
