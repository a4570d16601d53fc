//go:build tools

// Package tools pins the Jaeger that the local stack runs with OBSERVE=1.
package tools

import _ "github.com/jaegertracing/jaeger/cmd/all-in-one"
