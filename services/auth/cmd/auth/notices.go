package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"hub.internal/services/auth/redis"
)

// notices publishes, and tells the person at the terminal when that failed.
type notices struct {
	publisher *redis.Publisher
	warn      io.Writer
	effect    string
}

func (n *notices) Changed(ctx context.Context, id string) {
	err := errors.New("HUB_REDIS_URL is not set")
	if n.publisher != nil {
		err = n.publisher.Publish(ctx, id)
	}
	if err != nil {
		fmt.Fprintf(n.warn, "warning: the gateways could not be told at once (%s); %s within 2 s anyway\n", oneLine(err.Error()), n.effect)
	}
}
