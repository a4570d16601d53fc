// Package redis sends auth's notices to the gateways. It refuses to store anything:
// a notice that is lost costs two seconds.
package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"hub.internal/pkg/telemetry"
)

// Channel carries the ids of API keys that a gateway has to ask about again.
const Channel = "hub:apikeys"

// timeout bounds a notice: whoever revoked a key waits for it.
const timeout = time.Second

// Publisher publishes notices.
type Publisher struct {
	client *redis.Client
	calls  *telemetry.Dependency
}

// Open prepares a publisher; it reaches for no server yet.
func Open(url string) (*Publisher, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		// The parser's error may quote the URL with its password.
		return nil, errors.New("HUB_REDIS_URL is not a Redis URL, such as redis://127.0.0.1:6379/0")
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = timeout, timeout, timeout
	options.ContextTimeoutEnabled = true
	options.DialerRetries = 1
	options.MaxRetries = 1
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	logging.Disable() // a failure is returned, and told once
	return &Publisher{redis.NewClient(options), telemetry.NewDependency("redis")}, nil
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
