package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"hub.internal/pkg/localserver"
)

// readyLimit bounds a program's start.
const readyLimit = 30 * time.Second

// awaitOK waits until url answers 200; the program's end ends the wait.
func awaitOK(ctx context.Context, p *localserver.Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	// No kept connection: one that was opened to an earlier process would be in the way.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := askOnce(ctx, client, url)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.Err()
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %w", readyLimit, err)
		case <-tick.C:
		}
	}
}

func askOnce(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return nil
}
