// The Consul agent that tests run against: a module apart, so that its 250
// dependencies never enter a go.mod of Hub. v1.14.11 is the newest agent under
// MPL-2.0 that builds from the module proxy. Never run "go mod tidy" here: it
// also asks for the agent's own test dependencies.
module hub.internal/scripts/consul

go 1.25.3

require github.com/hashicorp/consul v1.14.11

replace github.com/envoyproxy/go-control-plane/xdsmatcher => github.com/envoyproxy/go-control-plane/xdsmatcher v0.0.0-20230524161521-aaaacbfbe53e
