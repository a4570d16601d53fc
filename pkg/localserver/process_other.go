//go:build !linux

package localserver

import (
	"context"
	"os/exec"
	"syscall"
)

// Outside Linux a child is not tied to its parent's life and processes cannot be looked
// up by directory: after a kill -9 of the parent, servers have to be ended by hand.

func dieWithParent(*exec.Cmd, syscall.Signal) {}

// Reclaim does nothing here.
func Reclaim(context.Context, string) error { return nil }

func descendants(int) []int { return nil }

func running([]int) bool { return false }
