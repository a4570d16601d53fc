package main

import (
	"context"
	"fmt"
	"time"

	"hub.internal/pkg/localstack"
)

// readyLimit is how long the services may take to become ready.
const readyLimit = time.Minute

// crashes is how often a service may end before `up` calls it broken.
const crashes = 3

// awaitReady waits until every service answers its readiness check with 200. A service
// that ends again and again fails at once, with its own last words.
func awaitReady(ctx context.Context, c control, e environment) error {
	// Restarts of an earlier start do not count.
	before, err := c.status()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, s := range e.services {
		for _, name := range e.instances(s) {
			if err := awaitInstance(ctx, c, e, s, name, before); err != nil {
				return err
			}
		}
	}
	for _, url := range append(e.standInURLs(), e.observerURLs()...) {
		if err := localstack.Await(ctx, nil, url, pollPause); err != nil {
			return err
		}
	}
	return nil
}

// awaitInstance waits for one process of a service. Any service that ends again and again fails it.
func awaitInstance(ctx context.Context, c control, e environment, s service, name string, before status) error {
	url := e.readyURL(s, name)
	var last error
	err := poll(ctx, nil, func() (bool, error) {
		now, err := c.status()
		if err != nil {
			return false, err
		}
		for _, other := range e.services {
			p := now.Programs[other.Name]
			if p.Restarts-before.Programs[other.Name].Restarts >= crashes {
				return false, withLog(fmt.Errorf("%s does not stay up (%s)", other.Name, p.Error), c.layout.log(other.Name))
			}
		}
		last = localstack.Ready(ctx, url)
		return last == nil, nil
	})
	if ctx.Err() != nil && last != nil {
		// The readiness check says what is missing, and the log why.
		return withLog(fmt.Errorf("%s is not ready: %w", name, last), c.layout.log(name))
	}
	return err
}

// readyURL is the readiness check of a process. The edge is asked where clients reach it, which the caller may
// have changed.
func (e environment) readyURL(s service, name string) string {
	if s.Edge {
		return e.gatewayURL() + "/readyz"
	}
	return "http://" + e.stack().Settings(s, name)["HUB_ADDR"] + "/readyz"
}
