package catalog

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
)

const (
	// manifestEvery is how often each service is asked for its manifest.
	manifestEvery = 5 * time.Second
	// maxManifest bounds one, in bytes.
	maxManifest = 8 << 20
	// maxOwners bounds the services that discovery may tell of.
	maxOwners = 64
)

// ownerName is the form of a service's name: that of its folder.
var ownerName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Clients are one client per service, each made when the service is first heard of and kept: the tools
// of one that has gone answer that it cannot be reached.
type Clients struct {
	dial func(service string) *remote.Client

	mu     sync.RWMutex
	byName map[string]*remote.Client
}

// NewClients makes those of the services that are known from the start.
func NewClients(dial func(service string) *remote.Client, services ...string) *Clients {
	c := &Clients{dial: dial, byName: map[string]*remote.Client{}}
	for _, name := range services {
		c.Ensure(name)
	}
	return c
}

// Client returns the client of a service; nil when nobody has met it.
func (c *Clients) Client(service string) *remote.Client {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byName[service]
}

// Ensure returns the client of a service, and makes it when there is none. That may wait for discovery.
func (c *Clients) Ensure(service string) *remote.Client {
	if known := c.Client(service); known != nil {
		return known
	}
	made := c.dial(service)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byName[service]; known != nil { // somebody else was faster
		made.Close()
		return known
	}
	c.byName[service] = made
	return made
}

// Close releases them all.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.byName {
		client.Close()
	}
}

// Follow asks each service that the catalog knows, and each that discovery tells of while it runs, for its
// manifest from time to time, until ctx ends. A service that is down or has gone keeps its last good one.
func (c *Catalog) Follow(ctx context.Context, clients *Clients,
	discovered func(ctx context.Context, tell func(names []string)) error) error {
	var all sync.WaitGroup
	defer all.Wait()
	followed := map[string]bool{}
	follow := func(names []string) {
		for _, name := range names {
			switch {
			case followed[name]:
				continue
			case !ownerName.MatchString(name) || name == caller.Gateway || len(followed) == maxOwners:
				c.logger.Error("service not followed: its name is no service's, or there are too many", "owner", Shown(name))
				continue
			}
			followed[name] = true
			all.Go(func() { c.follow(ctx, clients.Ensure(name), name) })
		}
	}
	follow(c.Owners())
	return discovered(ctx, follow)
}

// follow asks one service for its manifest every five seconds, until ctx ends. An error is logged once, until there is another
// one or the manifest holds again.
func (c *Catalog) follow(ctx context.Context, client *remote.Client, service string) {
	tick := time.NewTicker(manifestEvery)
	defer tick.Stop()
	last := ""
	for {
		if err := c.fetch(ctx, client, service); err != nil && err.Error() != last && ctx.Err() == nil {
			last = err.Error()
			c.record(service, err)
			if remote.Unanswered(err) {
				c.logger.Warn("manifest not read", "owner", service, "error", err)
			} else {
				c.logger.Error("manifest refused", "owner", service, "error", err)
			}
		} else if err == nil {
			last = ""
			c.record(service, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// fetch asks a service for its manifest once and applies it. Reading it to its bound and one byte more tells one that is too
// large from one that just fits.
func (c *Catalog) fetch(ctx context.Context, client *remote.Client, service string) error {
	ctx, cancel := context.WithTimeout(ctx, manifestEvery)
	defer cancel()
	response, err := client.Do(caller.Alone(ctx, caller.Gateway), remote.Request{Method: "GET", Path: rpc.ManifestPath, Retry: true})
	if err != nil {
		return err
	}
	defer response.Data.Close()
	b, err := io.ReadAll(io.LimitReader(response.Data, maxManifest+1))
	switch {
	case err != nil:
		return fmt.Errorf("manifest of %s: %w", service, err)
	case len(b) > maxManifest:
		return fmt.Errorf("manifest of %s: larger than %d bytes", service, maxManifest)
	}
	return c.apply(service, b)
}

// record remembers how an attempt to read the manifest of a service ended; that it does not answer refuses nothing.
func (c *Catalog) record(service string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.refused, service)
	} else if !remote.Unanswered(err) {
		c.refused[service] = true
	}
}

// Refused counts the services whose last manifest was refused.
func (c *Catalog) Refused() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.refused))
}
