package localserver

import (
	"net"
	"os"
	"strconv"
	"syscall"
)

// PortFree says whether a listener can be opened on the port of 127.0.0.1.
// Somebody else may take it a moment later: whoever needs to be sure binds it.
func PortFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// FreePort finds a TCP port on 127.0.0.1 that nobody listens on. As long as this process
// lives, the system gives the port to nobody who asks for any: only to who asks for this one,
// once or many times.
func FreePort() (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	port, err := reserve(fd)
	if err != nil {
		_ = syscall.Close(fd) // of no use
	}
	return port, err
}

// reserve binds the socket, and does not listen: to a connection it is as if nobody were
// there, and whoever sets SO_REUSEADDR, as servers do, may bind the port beside it.
func reserve(fd int) (int, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	addr, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	return addr.(*syscall.SockaddrInet4).Port, nil
}
