//go:build !linux

package service

import (
	"syscall"
	"time"
)

// boundSocket does nothing where the system has no such bounds.
func bound(syscall.RawConn, int, time.Duration) {}

// descriptors is 0: nobody asks the system here.
func descriptors() int { return 0 }
