package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// readyLimit is how long the services may take to become ready.
const readyLimit = time.Minute

// crashes is how often a service may end before `up` calls it broken.
const crashes = 3

// awaitReady waits until every service answers its readiness check with 200. A service
// that ends again and again fails at once, with its own last words.
func awaitReady(ctx context.Context, c control, e environment) error {
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
		var last error
		err := poll(ctx, nil, func() (bool, error) {
			last = ready(ctx, url)
			return last == nil, nil
		})
		if err != nil {
			return errors.Join(err, last)
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
		last = ready(ctx, url)
		return last == nil, nil
	})
	if ctx.Err() != nil && last != nil {
		return withLog(fmt.Errorf("%s is not ready: %w", name, last), c.layout.log(name))
	}
	return err
}

func (e environment) readyURL(s service, name string) string {
	if s.Edge {
		return e.gatewayURL() + "/readyz"
	}
	return "http://" + e.instanceSettings(s, name)["HUB_ADDR"] + "/readyz"
}

// ready asks once.
func ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "Get "))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return nil
}
