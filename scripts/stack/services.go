package main

import (
	"time"

	"hub.internal/pkg/inventory"
)

// service is one of Hub's, as deploy/services.json has it.
type service = inventory.Service

// The programs that stand in for the world outside of Hub.
const (
	mailSink = "mailsink" // takes every mail of the local stack, and shows them
	pgSim    = "pgsim"    // is the payment provider
	echo     = "echo"     // is the receiver of an app's notifications, and shows them
)

// grace is how long a service may take to stop: its own drain limit and a little more.
// It bounds the end of servers and simulators as well, which need less.
const grace = 30 * time.Second

// layerOf is when a service stops: before those whom it calls.
// What it calls goes on until it has answered its last call.
func layerOf(s service) int {
	if s.Edge {
		return layerEdge
	}
	return layerServices
}
