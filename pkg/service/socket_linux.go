package service

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// boundSocket bounds what the system keeps of data that has not been sent yet, and how long it offers
// data to a peer that does not read: on this socket and on those that it accepts. What the
// system does not know, it leaves as it is.
func boundSocket(c syscall.RawConn, unsent int, stall time.Duration) {
	_ = c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(stall.Milliseconds()))
	})
}

// descriptors is how many files and connections the process may have open at once; 0 when the system does not say.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30)) // it may be without end
}
