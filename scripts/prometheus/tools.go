//go:build tools

// Package tools pins the Prometheus that the local stack runs with OBSERVE=1.
package tools

import _ "github.com/prometheus/prometheus/cmd/prometheus"
