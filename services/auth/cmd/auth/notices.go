package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"hub.internal/pkg/service"
	"hub.internal/pkg/text"
	"hub.internal/services/auth/redis"
)

// notices publishes, and tells the person at the terminal when that failed.
type notices struct {
	publisher *redis.Publisher
	warn      io.Writer
	effect    string
}

// publish tells the gateways; a publisher that is nil cannot.
func publish(ctx context.Context, publisher *redis.Publisher, id string) error {
	if publisher == nil {
		return errors.New("HUB_REDIS_URL is not set")
	}
	return publisher.Publish(ctx, id)
}

// logged publishes what was changed in the console.
type logged struct {
	publisher *redis.Publisher
	logger    *slog.Logger
}

// noticesOf publishes at a URL, until the service has stopped; without one it only logs.
func noticesOf(h *service.Host, url string) (logged, error) {
	n := logged{logger: h.Logger()}
	if url == "" {
		return n, nil
	}
	var err error
	if n.publisher, err = redis.Open(url); err == nil {
		h.Check("Redis", "HUB_REDIS_URL", n.publisher.Ping)
		h.OnStop("Redis", func(context.Context) error { return n.publisher.Close() })
	}
	return n, err
}

func (n logged) Changed(ctx context.Context, id string) {
	// The change is committed: whoever asked for it may leave.
	if err := publish(context.WithoutCancel(ctx), n.publisher, id); err != nil {
		n.logger.WarnContext(ctx, "the gateways could not be told of a changed key; they ask within 2 s", "key_id", id, "error", err)
	}
}

func (n *notices) Changed(ctx context.Context, id string) {
	if err := publish(ctx, n.publisher, id); err != nil {
		fmt.Fprintf(n.warn, "warning: the gateways could not be told at once (%s); %s within 2 s anyway\n",
			text.OneLine(err.Error()), n.effect)
	}
}
