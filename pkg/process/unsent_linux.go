package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// keepUnsent bounds what the system keeps of data that has not been sent yet, on this socket
// and on those that it accepts. Where the system does not take the bound, it keeps its own.
func keepUnsent(c syscall.RawConn, bytes int) {
	_ = c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes)
	})
}
