// Package redis sends auth's notices to the gateways. It refuses to store anything:
// a notice that is lost costs two seconds.
package redis

import (
	"context"
	"time"

	"hub.internal/pkg/redis"
	"hub.internal/pkg/telemetry"
)

// Channel carries the ids of API keys that a gateway has to ask about again.
const Channel = "hub:apikeys"

// timeout bounds a notice: whoever revoked a key waits for it.
const timeout = time.Second

// Publisher publishes notices.
type Publisher struct {
	client redis.Client
	calls  *telemetry.Dependency
}

// Open prepares a publisher; it reaches for no server yet. The URL is as redis.Open takes it, and so is the error. A notice is sent
// once more where its connection broke, as one does that a server has closed in silence: a gateway that hears it twice asks twice.
func Open(url string) (*Publisher, error) {
	client, err := redis.Open(url, redis.Options{Timeout: timeout, Retries: 1})
	if err != nil {
		return nil, err
	}
	return &Publisher{client, telemetry.NewDependency("redis")}, nil
}

// Publish tells every gateway that listens to ask about the key again.
func (p *Publisher) Publish(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := time.Now()
	err := p.client.Publish(ctx, Channel, id).Err()
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	p.calls.Done(ctx, "publish", start, outcome)
	return err
}

// Ping tells whether the server answers.
func (p *Publisher) Ping(ctx context.Context) error { return p.client.Ping(ctx).Err() }

// Close drops the connection.
func (p *Publisher) Close() error { return p.client.Close() }
