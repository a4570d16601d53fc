package localserver

import (
	"net"
	"strconv"
)

// PortFree says whether a listener can be opened on the port of 127.0.0.1.
func PortFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
