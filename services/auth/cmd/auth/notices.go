package main

import (
	"context"
	"errors"

	"hub.internal/pkg/service"
	"hub.internal/services/auth/redis"
)

// notices tell the gateways which key has changed, so that none waits until its cached answer expires.
type notices struct {
	// publisher is nil without HUB_REDIS_URL.
	publisher *redis.Publisher
	// failed is told of a notice that was not published.
	failed func(id string, err error)
}

// noticesOf publishes at a URL until the service has stopped; without one it only logs.
func noticesOf(h *service.Host, url string) (n notices, err error) {
	n.failed = func(id string, err error) {
		h.Logger().Warn("the gateways could not be told of a changed key; they ask within 2 s", "key_id", id, "error", err)
	}
	if url == "" {
		return n, nil
	}
	if n.publisher, err = redis.Open(url); err == nil {
		h.Check("Redis", "HUB_REDIS_URL", n.publisher.Ping)
		h.OnStop("Redis", func(context.Context) error { return n.publisher.Close() })
	}
	return n, err
}

// Changed implements auth.Notices.
func (n notices) Changed(ctx context.Context, id string) {
	err := errors.New("HUB_REDIS_URL is not set")
	if n.publisher != nil {
		// The change is committed: whoever asked for it may leave.
		err = n.publisher.Publish(context.WithoutCancel(ctx), id)
	}
	if err != nil {
		n.failed(id, err)
	}
}
