//go:build tools

// Package tools pins the Consul agent that tests run against.
package tools

import _ "github.com/hashicorp/consul"
