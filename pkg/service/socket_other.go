//go:build !linux

package service

import (
	"syscall"
	"time"
)

// bound does nothing where the system has no such bounds.
func bound(syscall.RawConn, int, time.Duration) {}
