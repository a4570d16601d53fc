package redis_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/redis"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func open(t *testing.T, url string, o redis.Options) redis.Client {
	t.Helper()
	client, err := redis.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestOpenOfOneServer(t *testing.T) {
	client, one := open(t, "rediss://ada:secret@redis.example:7000/3",
		redis.Options{Timeout: 30 * time.Millisecond, PoolSize: 32}).(*goredis.Client)
	if !one {
		t.Fatal("a URL of one server made a client of a cluster")
	}
	o := client.Options()
	if o.Addr != "redis.example:7000" || o.Username != "ada" || o.Password != "secret" || o.DB != 3 {
		t.Errorf("server %s, database %d, user %q with %q", o.Addr, o.DB, o.Username, o.Password)
	}
	if o.TLSConfig == nil || o.TLSConfig.ServerName != "redis.example" || o.TLSConfig.InsecureSkipVerify {
		t.Errorf("rediss:// has the TLS %+v", o.TLSConfig)
	}
	for what, d := range map[string]time.Duration{"dial": o.DialTimeout, "read": o.ReadTimeout, "write": o.WriteTimeout,
		"pool": o.PoolTimeout} {
		if d != 30*time.Millisecond {
			t.Errorf("%s: %s", what, d)
		}
	}
	if o.MaxRetries != 0 || o.DialerRetries != 1 || o.PoolSize != 32 || !o.ContextTimeoutEnabled || !o.DisableIdentity {
		t.Errorf("%+v", o)
	}
	again := open(t, "redis://redis.example", redis.Options{Timeout: time.Second, Retries: 1}).(*goredis.Client).Options()
	if again.MaxRetries != 1 || again.PoolSize < 10 || again.TLSConfig != nil {
		t.Errorf("%d retries, a pool of %d, TLS %v", again.MaxRetries, again.PoolSize, again.TLSConfig)
	}
}

func TestOpenOfACluster(t *testing.T) {
	for url, addrs := range map[string]string{
		"rediss://ada:secret@a.example:7000?cluster=true":                                 "a.example:7000",
		"rediss://ada:secret@a.example:7000?addr=b.example:7001&addr=c.example:7002":      "a.example:7000 b.example:7001 c.example:7002",
		"rediss://ada:secret@a.example:7000?addr=b.example:7001&cluster=1&read_only=true": "a.example:7000 b.example:7001",
	} {
		client, many := open(t, url, redis.Options{Timeout: time.Second, Retries: 1, PoolSize: 32}).(*goredis.ClusterClient)
		if !many {
			t.Errorf("%s made a client of one server", url)
			continue
		}
		o := client.Options()
		if got := strings.Join(o.Addrs, " "); got != addrs || o.Username != "ada" || o.Password != "secret" || o.TLSConfig == nil {
			t.Errorf("%s: nodes %s, user %q with %q, TLS %v", url, got, o.Username, o.Password, o.TLSConfig)
		}
		for what, d := range map[string]time.Duration{"dial": o.DialTimeout, "read": o.ReadTimeout, "write": o.WriteTimeout,
			"pool": o.PoolTimeout} {
			if d != time.Second {
				t.Errorf("%s: %s", what, d)
			}
		}
		if o.DialerRetries != 1 || o.PoolSize != 32 || !o.ContextTimeoutEnabled || !o.DisableIdentity {
			t.Errorf("%s: %+v", url, o)
		}
	}
	if _, one := open(t, "redis://a.example?cluster=false", redis.Options{Timeout: time.Second}).(*goredis.Client); !one {
		t.Error("cluster=false made a client of a cluster")
	}
}

func TestOpenOfSentinels(t *testing.T) {
	o := open(t, "rediss://ada:secret@a.example:26379/3?master_name=hub&addr=b.example:26379&sentinel_username=s&sentinel_password=p",
		redis.Options{Timeout: time.Second}).(*goredis.Client).Options()
	if o.Username != "ada" || o.Password != "secret" || o.DB != 3 || o.TLSConfig == nil || o.TLSConfig.ServerName != "" ||
		o.TLSConfig.InsecureSkipVerify || o.MaxRetries != 0 || o.DialerRetries != 1 || !o.ContextTimeoutEnabled || !o.DisableIdentity {
		t.Errorf("%+v", o)
	}
	for what, d := range map[string]time.Duration{"dial": o.DialTimeout, "read": o.ReadTimeout, "write": o.WriteTimeout,
		"pool": o.PoolTimeout} {
		if d != time.Second {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestAServerThatIsAwayFailsAtOnce: of the copies that this package was made of, the gateway's tried to connect five times to one
// server, with pauses of 100 ms.
func TestAServerThatIsAwayFailsAtOnce(t *testing.T) {
	client := open(t, "redis://127.0.0.1:1", redis.Options{Timeout: 10 * time.Second})
	start := time.Now()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Fatal("port 1 answered")
	}
	if took := time.Since(start); took > 300*time.Millisecond {
		t.Errorf("the refusal took %s", took)
	}
}

func TestAURLThatIsNoneNamesTheSettingAndNoPassword(t *testing.T) {
	for _, url := range []string{
		"", "http://u:hunter2@host", "redis://u:hunter2@host:port", "redis://u:hunter2@host/\x00", "redis://u:hunter2@host?cluster=perhaps",
		"redis://u:hunter2@host?cluster=true&hunter2=1", "redis://u:hunter2@host?hunter2=1",
		"redis://u:hunter2@host?master_name=", "redis://u:hunter2@host?master_name=hub&hunter2=1", "http://u:hunter2@host?master_name=hub",
	} {
		_, err := redis.Open(url, redis.Options{Timeout: time.Second})
		if err == nil || !strings.Contains(err.Error(), "HUB_REDIS_URL") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
