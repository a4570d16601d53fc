// Package redis makes the clients of Redis that services have: of one server, of one that sentinels watch, or of a cluster, over TLS
// or not, as a user with few rights (ACL). It refuses to know any command.
package redis

import (
	"cmp"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// reloadEvery is how long the client of a cluster trusts what it knows of the nodes, as long as none sends it on.
const reloadEvery = 5 * time.Second

// Client is a client of one server or of a cluster.
type Client = redis.UniversalClient

// Options are what one client has otherwise than another.
type Options struct {
	// Timeout bounds each of these by itself: making a connection, waiting for a free one, a read and a write. The deadline of a
	// call's context bounds them all together. It has to be positive.
	Timeout time.Duration
	// Retries is how often a command is sent to one server again after its connection broke: 0 for a command that must not be run
	// twice. In a cluster, the client follows the nodes that send it on, and sends nothing else again.
	Retries int
	// PoolSize is how many connections there may be to a server at most; 0 leaves it to the library: 10 for each core, 5 in a cluster.
	PoolSize int
}

// Open prepares a client, which connects when it is first used. The URL is redis:// or rediss:// (TLS), with the user and password;
// with cluster=true it names a node of a cluster, with master_name=NAME a sentinel of the server of that name, and addr=host:port, any
// number of times, names further ones. What sentinels want is in sentinel_username and sentinel_password. The error for any other
// text names the setting HUB_REDIS_URL, and quotes nothing of the text, which may hold a password.
func Open(url string, o Options) (Client, error) {
	logging.Disable() // a failure is returned, and told once by whoever called
	client, err := clientOf(url, o)
	if err != nil {
		return nil, errors.New("HUB_REDIS_URL is not a Redis URL, such as redis://127.0.0.1:6379/0")
	}
	return client, nil
}

func clientOf(text string, o Options) (Client, error) {
	if u, err := url.Parse(text); err == nil && u.Query().Has(masterName) {
		return sentineled(u, o)
	}
	text, isCluster, err := cluster(text)
	if err != nil {
		return nil, err
	}
	// A connection begins with nothing that a user with few rights may not do.
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if isCluster {
		options, err := redis.ParseClusterURL(text)
		if err != nil {
			return nil, err
		}
		options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = o.Timeout, o.Timeout, o.Timeout, o.Timeout
		options.ContextTimeoutEnabled, options.DisableIdentity, options.MaintNotificationsConfig = true, true, quiet
		options.DialerRetries, options.PoolSize, options.ClusterStateReloadInterval = 1, o.PoolSize, reloadEvery
		return redis.NewClusterClient(options), nil
	}
	options, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = o.Timeout, o.Timeout, o.Timeout, o.Timeout
	options.ContextTimeoutEnabled, options.DisableIdentity, options.MaintNotificationsConfig = true, true, quiet
	options.DialerRetries, options.PoolSize, options.MaxRetries = 1, o.PoolSize, o.retries()
	return redis.NewClient(options), nil
}

// retries is Retries for the library, which takes 0 for its own number.
func (o Options) retries() int { return cmp.Or(o.Retries, -1) }

// masterName is the parameter of a URL that names sentinels.
const masterName = "master_name"

// sentineled is a client of the server that the sentinels of a URL call the master of this name, whoever that is. In the library's
// own form the user before the host is the sentinels', in Hub's it is the server's, as everywhere.
func sentineled(u *url.URL, o Options) (Client, error) {
	q, user := u.Query(), u.User
	name, password := q.Get("sentinel_username"), q.Get("sentinel_password")
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	u.RawQuery, u.User = q.Encode(), nil
	options, err := redis.ParseFailoverURL(u.String())
	if err != nil || options.MasterName == "" {
		return nil, cmp.Or(err, errors.New("no name of a master"))
	}
	options.SentinelUsername, options.SentinelPassword = name, password
	options.Username = user.Username()
	options.Password, _ = user.Password()
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName = "" // each one's own, and not the first sentinel's
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = o.Timeout, o.Timeout, o.Timeout, o.Timeout
	options.ContextTimeoutEnabled, options.DisableIdentity = true, true
	options.DialerRetries, options.PoolSize, options.MaxRetries = 1, o.PoolSize, o.retries()
	return redis.NewFailoverClient(options), nil
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
