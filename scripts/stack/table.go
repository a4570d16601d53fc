package main

import (
	"path/filepath"
	"time"
)

// service is a row of the table of services.
type service struct {
	name  string
	layer int
	// What it needs, each in its own environment variable.
	store, redis, source, pepper, catalog, mail bool
}

// table lists Hub's services. A service's folder, program and discovery name are the same
// word. A row whose program does not exist in this checkout is left out.
var table = []service{
	{name: "gateway", layer: layerEdge, store: true, redis: true, catalog: true},
	{name: "auth", layer: layerServices, store: true, redis: true, pepper: true},
	{name: "query", layer: layerServices, store: true, source: true},
	{name: "authoring", layer: layerServices, store: true},
	{name: "review-control", layer: layerServices, store: true, mail: true},
	{name: "admin", layer: layerServices, store: true},
	{name: "payments", layer: layerServices, store: true},
}

// mailSink is the program that takes every mail of the local stack, and shows them.
const mailSink = "mailsink"

// grace is how long a service may take to stop: its own drain limit and a little more.
const grace = 30 * time.Second

// present are the rows whose program is in the checkout.
func present(l layout) (rows []service) {
	for _, s := range table {
		if hasProgram(l.path("services", s.name, "cmd", s.name)) {
			rows = append(rows, s)
		}
	}
	return rows
}

// programs are the packages to build into bin/: each command of each service, this program
// and the generator of sample data.
func programs(l layout) ([]string, error) {
	dirs, err := filepath.Glob(l.path("services", "*", "cmd", "*"))
	if err != nil {
		return nil, err
	}
	packages := []string{"./scripts/stack", "./scripts/gen", "./scripts/" + mailSink}
	for _, dir := range dirs {
		if !hasProgram(dir) {
			continue
		}
		rel, err := filepath.Rel(l.root, dir)
		if err != nil {
			return nil, err
		}
		packages = append(packages, "./"+filepath.ToSlash(rel))
	}
	return packages, nil
}

// hasProgram says whether the directory holds Go files.
func hasProgram(dir string) bool {
	sources, _ := filepath.Glob(filepath.Join(dir, "*.go")) // the pattern is valid
	return len(sources) > 0
}
