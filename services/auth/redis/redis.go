// Package redis sends auth's notices to the gateways. It refuses to store anything:
// a notice that is lost costs two seconds.
package redis

import (
	"context"
	"errors"
	"net/url"
	"strconv"
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

// reloadEvery is how long what is known of a cluster's nodes is trusted, as long as none sends on to another.
const reloadEvery = 5 * time.Second

// Publisher publishes notices.
type Publisher struct {
	client redis.UniversalClient
	calls  *telemetry.Dependency
}

// Open prepares a publisher; it reaches for no server yet. The URL is as the gateway's: with cluster=true or
// addr=host:port it names nodes of a cluster.
func Open(url string) (*Publisher, error) {
	logging.Disable() // a failure is returned, and told once
	client, err := clientOf(url)
	if err != nil {
		// The parser's error may quote the URL with its password.
		return nil, errors.New("HUB_REDIS_URL is not a Redis URL, such as redis://127.0.0.1:6379/0")
	}
	return &Publisher{client, telemetry.NewDependency("redis")}, nil
}

func clientOf(text string) (redis.UniversalClient, error) {
	text, isCluster, err := cluster(text)
	if err != nil {
		return nil, err
	}
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if isCluster {
		options, err := redis.ParseClusterURL(text)
		if err != nil {
			return nil, err
		}
		options.DialTimeout, options.ReadTimeout, options.WriteTimeout = timeout, timeout, timeout
		options.ContextTimeoutEnabled, options.DisableIdentity, options.DialerRetries = true, true, 1
		options.MaintNotificationsConfig = quiet
		options.ClusterStateReloadInterval = reloadEvery
		return redis.NewClusterClient(options), nil
	}
	options, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = timeout, timeout, timeout
	options.ContextTimeoutEnabled, options.DisableIdentity, options.DialerRetries = true, true, 1
	options.MaxRetries = 1
	options.MaintNotificationsConfig = quiet
	return redis.NewClient(options), nil
}

// cluster takes cluster=true out of a URL, which is Hub's and not the library's.
func cluster(text string) (plain string, is bool, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", false, err
	}
	q := u.Query()
	if is = q.Has("cluster"); is {
		if is, err = strconv.ParseBool(q.Get("cluster")); err != nil {
			return "", false, err
		}
		q.Del("cluster")
		u.RawQuery = q.Encode()
	}
	return u.String(), is || q.Has("addr"), nil
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
