// Jaeger, which keeps and finds traces, for the local stack: a module apart, so that its dependencies
// never enter a go.mod of Hub. v1.62.0 builds from the module proxy; its pages are a build of their own that is in no module:
// its API answers, and "/" is a placeholder. Never run "go mod tidy" here: it also asks for what its own tests need.
module hub.internal/scripts/jaeger

go 1.26.7

require github.com/jaegertracing/jaeger v1.62.0
