package gateway

import (
	"hub.internal/pkg/remote"
)

// Clients holds one client per service.
type Clients map[string]*remote.Client

// Client implements Services.
func (c Clients) Client(service string) *remote.Client { return c[service] }

// Close releases them all.
func (c Clients) Close() {
	for _, client := range c {
		client.Close()
	}
}
