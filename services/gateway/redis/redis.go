// Package redis is what the gateway uses Redis for: rate limits that all replicas
// share (package lease), and notices of changed API keys. Neither is needed for a right answer: see
// edge.Fallback and edge.KeyCache.
//
// In a cluster all buckets of a call have to be in one place, since one script reads and writes them together: their names
// have a hash tag of the service that calls (edge.Bucket.Key).
package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hub.internal/pkg/redis"
	"hub.internal/pkg/telemetry"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/lease"
)

const (
	// budget is what a call waits for Redis before the limits hold in memory.
	budget = 30 * time.Millisecond
	// patience is what a write to the subscription, or its connection, may take.
	patience = time.Second
	// Notices is the channel on which auth says that a key changed.
	Notices = "hub:apikeys"
	// poolSize is how many connections there may be to a server.
	poolSize = 32
	// askEvery is how often the server is asked whether notices arrive, and answerWithin is how long it may take to answer.
	askEvery     = 300 * time.Millisecond
	answerWithin = 2 * time.Second
	// resubscribe is the pause before a lost subscription is tried again.
	resubscribe = 200 * time.Millisecond
)

//go:embed gcra.lua
var gcra string

// Redis is a client with a short temper, of one server or of a cluster.
type Redis struct {
	client redis.Client
	// notices has more patience: nobody waits for it, and a subscription that breaks makes the gateway forget what it knows.
	notices redis.Client
	// script is the GCRA in Lua, so that reading and writing the buckets of a call is one step of Redis'.
	script *goredis.Script
	budget time.Duration
	// calls shows each decision as a call of the dependency redis.
	calls  *telemetry.Dependency
	forget func() // ends the pool's gauges
}

var _ lease.Store = (*Redis)(nil)

// Open prepares a client; it connects when it is first used. The URL is as redis.Open takes it, and so is the error.
func Open(url string) (*Redis, error) { return open(url, budget) }

// open is Open with another budget, for tests.
func open(text string, budget time.Duration) (*Redis, error) {
	// Nothing is sent again: there is no time for it, and a call would be charged twice.
	client, err := redis.Open(text, redis.Options{Timeout: budget, PoolSize: poolSize})
	if err != nil {
		return nil, err
	}
	notices, err := redis.Open(text, redis.Options{Timeout: patience, PoolSize: poolSize})
	if err != nil {
		return nil, err
	}
	r := &Redis{client: client, notices: notices, script: goredis.NewScript(gcra), budget: budget, calls: telemetry.NewDependency("redis")}
	r.forget = telemetry.ObservePool("redis", func() telemetry.Pool {
		s := client.PoolStats()
		return telemetry.Pool{Max: poolSize, Used: int64(s.TotalConns) - int64(s.IdleConns), Idle: int64(s.IdleConns),
			Waits: int64(s.WaitCount), Waited: time.Duration(s.WaitDurationNs)}
	})
	return r, nil
}

// Close drops the connections.
func (r *Redis) Close() error {
	r.forget()
	return errors.Join(r.client.Close(), r.notices.Close())
}

// probe is a bucket that is nobody's.
var probe = []edge.Bucket{{Name: "rl:{probe}", Rate: edge.Rate{PerMinute: 6000, Burst: 6000}}}

// Ping tells whether Redis decides: whether this client may run the script and write a bucket. Of a cluster, whether
// every part of it is there, too, for each holds some of the limits.
func (r *Redis) Ping(ctx context.Context) error {
	_, err := r.decide(ctx, probe, lease.Ask{Calls: 1})
	c, isCluster := r.client.(*goredis.ClusterClient)
	if !isCluster {
		return err
	}
	c.ReloadState(ctx) // in the background: the next look sees who has taken over
	if err != nil {
		return err
	}
	return c.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
		info, err := node.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = errors.New("the cluster is down")
		}
		return err
	})
}

// Charge implements lease.Store, in one round trip and by Redis' own clock.
func (r *Redis) Charge(ctx context.Context, buckets []edge.Bucket, ask lease.Ask) (_ lease.Answer, err error) {
	defer func(start time.Time) { r.calls.Done(ctx, "limit", start, outcome(err)) }(time.Now())
	ctx, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	answer, err := r.decide(ctx, buckets, ask)
	// A server that refuses a call may do so for its buckets or for everybody's: a bucket of nobody's tells which.
	var said goredis.Error
	if errors.As(err, &said) && r.Ping(ctx) == nil {
		return answer, fmt.Errorf("%w: %w", edge.ErrUndecided, err)
	}
	if err != nil {
		return answer, fmt.Errorf("rate limit script: %w", err)
	}
	return answer, nil
}

// decide runs the script.
func (r *Redis) decide(ctx context.Context, buckets []edge.Bucket, ask lease.Ask) (answer lease.Answer, err error) {
	back := lease.Back{}
	if ask.Back != nil {
		back = *ask.Back
	}
	keys := make([]string, len(buckets))
	args := append(make([]any, 0, 5+4*len(buckets)), ask.Calls, ask.Share, lease.Longest.Microseconds(), back.Unused, back.Until)
	for i, b := range buckets {
		keys[i] = b.Key()
		args = append(args, b.Interval().Microseconds(), b.Tolerance().Microseconds())
		if ask.Back != nil {
			args = append(args, back.Tats[i], back.Early[i].Microseconds())
		} else {
			args = append(args, "", 0)
		}
	}
	values, err := r.script.Run(ctx, r.client, keys, args...).Int64Slice()
	if err == nil && len(values) != 6+2*len(buckets) {
		err = fmt.Errorf("%d values for %d buckets", len(values), len(buckets))
	}
	if err != nil {
		return answer, err
	}
	micro := func(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
	answer = lease.Answer{Calls: int(values[0]), Share: int(values[1]), Refused: int(values[2]) - 1, Wait: micro(values[3]),
		Hold: micro(values[4]), Now: values[5], Tats: values[6 : 6+len(buckets)]}
	for _, ahead := range values[6+len(buckets):] {
		answer.Before = append(answer.Before, micro(ahead))
	}
	return answer, nil
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

// Listener is told what happens on the channel of notices.
type Listener interface {
	// Forget is for each notice: the id of a key that auth has changed.
	Forget(id string)
	// ForgetAll is for a subscription that is made, or made again: notices may have been missed.
	ForgetAll()
	// CaughtUp tells that what was said before this moment has arrived.
	CaughtUp(at time.Time)
}

// Subscribe tells what it hears until ctx ends. A subscription that breaks is made again.
func (r *Redis) Subscribe(ctx context.Context, logger *slog.Logger, to Listener) error {
	for ctx.Err() == nil {
		err := r.receive(ctx, to)
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

// errSilent ends a subscription whose server does not answer.
var errSilent = errors.New("the server of the subscription does not answer")

// receive asks the server on the subscription's own connection again and again: its answer comes behind all notices from
// before the question, and one that hangs gives none.
func (r *Redis) receive(ctx context.Context, to Listener) error {
	subscription := r.notices.Subscribe(ctx, Notices)
	defer subscription.Close()
	if _, err := subscription.ReceiveTimeout(ctx, time.Second); err != nil {
		return err
	}
	// What was said before this moment went by unheard.
	to.ForgetAll()
	var asked time.Time
	for waits := false; ; {
		switch since := time.Since(asked); {
		case waits && since > answerWithin:
			return errSilent
		case !waits && since >= askEvery:
			asked, waits = time.Now(), true
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
		}
		message, err := subscription.ReceiveTimeout(ctx, askEvery)
		// Silence is normal. Any other error ends here: go-redis would subscribe again by itself, and hide that notices were missed.
		var silence net.Error
		if err != nil && (ctx.Err() != nil || !errors.As(err, &silence) || !silence.Timeout()) {
			return err
		}
		switch m := message.(type) {
		case *goredis.Message:
			to.Forget(m.Payload)
		case *goredis.Pong:
			to.CaughtUp(asked)
			waits = false
		}
	}
}
