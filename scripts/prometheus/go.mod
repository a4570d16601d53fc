// Prometheus for the local stack: a module apart, so that its dependencies never enter a go.mod of Hub. It is built with
// -tags remove_all_sd, without the clients of clouds. Its pages are a build of their own that is in no module: its API answers. Never
// run "go mod tidy" here: it also asks for what its own tests need.
module hub.internal/scripts/prometheus

go 1.26.7

require github.com/prometheus/prometheus v0.315.0
