//go:build !linux

package process

import "syscall"

// keepUnsent does nothing where the system has no such bound.
func keepUnsent(syscall.RawConn, int) {}
