// Package redis is what the gateway uses Redis for: rate limits that all replicas
// share, and notices of changed API keys. Neither is needed for a right answer: see
// gateway.Fallback and gateway.KeyCache.
package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"hub.internal/pkg/telemetry"
	"hub.internal/services/gateway"
)

const (
	// budget is what a call waits for Redis before the limits hold in memory.
	budget = 30 * time.Millisecond
	// Notices is the channel on which auth says that a key changed.
	Notices = "hub:apikeys"
	// reloadEvery is how long the client of a cluster trusts what it knows of the nodes, as long as none sends it on.
	reloadEvery = 5 * time.Second
	// resubscribe is the pause before a lost subscription is tried again.
	resubscribe = 200 * time.Millisecond
)

//go:embed gcra.lua
var gcra string

// Redis is a client with a short temper, of one server or of a cluster.
type Redis struct {
	client redis.UniversalClient
	script *redis.Script
	budget time.Duration
	calls  *telemetry.Dependency
	forget func() // ends the pool's gauges
}

var _ gateway.Shared = (*Redis)(nil)

// Open prepares a client; it connects when it is first used. The URL is redis:// or rediss://; with cluster=true it
// names a node of a cluster, and addr=host:port, any number of times, further ones.
func Open(url string) (*Redis, error) { return open(url, budget) }

func open(text string, budget time.Duration) (*Redis, error) {
	logging.Disable()
	client, err := clientOf(text, budget)
	if err != nil {
		return nil, errors.New("HUB_REDIS_URL is not a redis:// URL")
	}
	r := &Redis{client: client, script: redis.NewScript(gcra), budget: budget, calls: telemetry.NewDependency("redis")}
	r.forget = telemetry.ObservePool("redis", func() telemetry.Pool {
		s := client.PoolStats()
		return telemetry.Pool{Max: poolSize, Used: int64(s.TotalConns) - int64(s.IdleConns), Idle: int64(s.IdleConns),
			Waits: int64(s.WaitCount), Waited: time.Duration(s.WaitDurationNs)}
	})
	return r, nil
}

// poolSize is how many connections there may be to a server.
const poolSize = 32

func clientOf(text string, budget time.Duration) (redis.UniversalClient, error) {
	text, isCluster, err := cluster(text)
	if err != nil {
		return nil, err
	}
	if isCluster {
		options, err := redis.ParseClusterURL(text)
		if err != nil {
			return nil, err
		}
		options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = budget, budget, budget, budget
		options.ContextTimeoutEnabled = true
		options.PoolSize = poolSize
		options.DialerRetries, options.ClusterStateReloadInterval = 1, reloadEvery
		return redis.NewClusterClient(options), nil
	}
	options, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = budget, budget, budget, budget
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	options.PoolSize = poolSize
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

// Close drops the connections.
func (r *Redis) Close() error {
	r.forget()
	return r.client.Close()
}

// Ping tells whether Redis answers; of a cluster, whether every part of it does, for each holds some of the limits.
func (r *Redis) Ping(ctx context.Context) error {
	c, isCluster := r.client.(*redis.ClusterClient)
	if !isCluster {
		return r.client.Ping(ctx).Err()
	}
	c.ReloadState(ctx) // in the background: the next look sees who has taken over
	return c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		info, err := node.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = errors.New("the cluster is down")
		}
		return err
	})
}

// Take charges all buckets of a call in one round trip, by Redis' own clock.
func (r *Redis) Take(ctx context.Context, buckets []gateway.Bucket) (_ gateway.Decision, err error) {
	defer func(start time.Time) { r.calls.Done(ctx, "limit", start, outcome(err)) }(time.Now())
	ctx, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	keys, args := make([]string, len(buckets)), make([]any, 0, 2*len(buckets))
	for i, b := range buckets {
		keys[i] = b.Key
		args = append(args, b.Interval().Microseconds(), b.Tolerance().Microseconds())
	}
	values, err := r.script.Run(ctx, r.client, keys, args...).Int64Slice()
	if err != nil {
		return gateway.Decision{}, fmt.Errorf("rate limit script: %w", err)
	}
	if len(values) != len(buckets)+2 {
		return gateway.Decision{}, fmt.Errorf("rate limit script answered %d values", len(values))
	}
	var d gateway.Decision
	if refused := values[0]; refused > 0 {
		d.Refused = buckets[refused-1].Scope
		d.RetryAfter = time.Duration(values[1]) * time.Microsecond
	}
	for i, b := range buckets {
		d.States = append(d.States, gateway.StateOf(b, time.Duration(values[i+2])*time.Microsecond))
	}
	return d, nil
}

// outcome is ok, "late" for what the budget was too short for, or "failed".
func outcome(err error) string {
	var slow net.Error
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return "late"
	}
	return "failed"
}

// Subscribe calls changed for each notice until ctx ends. A subscription that breaks
// is made again, and lost is called each time, for notices may have been missed.
func (r *Redis) Subscribe(ctx context.Context, logger *slog.Logger, changed func(id string), lost func()) error {
	for ctx.Err() == nil {
		err := r.receive(ctx, changed, lost)
		if ctx.Err() == nil {
			logger.Debug("key notices interrupted", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(resubscribe):
		}
	}
	return nil
}

func (r *Redis) receive(ctx context.Context, changed func(id string), lost func()) error {
	subscription := r.client.Subscribe(ctx, Notices)
	defer subscription.Close()
	if _, err := subscription.ReceiveTimeout(ctx, time.Second); err != nil {
		return err
	}
	// What was said before this moment went by unheard.
	lost()
	for {
		message, err := subscription.ReceiveTimeout(ctx, time.Second)
		if err != nil {
			// Silence is normal; a peer that hangs is found by asking it. Any other error ends
			// here: go-redis would subscribe again by itself, and hide that notices were missed.
			var silence net.Error
			if ctx.Err() != nil || !errors.As(err, &silence) || !silence.Timeout() {
				return err
			}
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			if message, err = subscription.ReceiveTimeout(ctx, time.Second); err != nil {
				return err
			}
		}
		if m, ok := message.(*redis.Message); ok {
			changed(m.Payload)
		}
	}
}
