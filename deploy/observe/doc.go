// Package observe has tests alone: they hold the dashboards of deploy/grafana, the alerts of deploy/prometheus and the queries of
// deploy/runbooks to metrics.json, which a test of services/e2e holds to running programs, and let each alert fire and stay quiet.
// It is a module of its own, so that Prometheus' parser and engine are in no program's go.mod.
package observe
