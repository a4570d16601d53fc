package redis_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/auth/redis"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "TestNoticeArrives|TestAuthsUser")
}

func open(t *testing.T, url string) *redis.Publisher {
	t.Helper()
	p, err := redis.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestNoticeArrives(t *testing.T) {
	t.Parallel()
	server := hubtest.RedisWithUsers(t)
	gateway := goredis.NewClient(&goredis.Options{Addr: server.Addr(), Username: "hub_gateway", Password: "hub_gateway"})
	t.Cleanup(func() { _ = gateway.Close() })
	subscription := gateway.Subscribe(t.Context(), "hub:apikeys")
	if _, err := subscription.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	// Publishing knows no databases: a URL with another one reaches every gateway.
	if err := open(t, server.UserURL("hub_auth", "hub_auth", 7)).Publish(t.Context(), "ak_1"); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-subscription.Channel():
		if m.Payload != "ak_1" {
			t.Errorf("payload %q", m.Payload)
		}
		if took := time.Since(sent); took > 100*time.Millisecond {
			t.Logf("the notice took %v", took)
		}
	case <-time.After(time.Minute):
		t.Error("no notice")
	}
}

// TestAuthsUser: the user of deploy/redis may tell of changed keys, and nothing else.
func TestAuthsUser(t *testing.T) {
	t.Parallel()
	server := hubtest.RedisWithUsers(t)
	url := server.UserURL("hub_auth", "hub_auth", 0)
	if err := open(t, url).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	hubtest.RedisRefuses(
		t,
		url,
		"GET rl:x",
		"SET rl:x 1",
		"SET x 1",
		"EVAL \"return 1\" 0",
		"EVALSHA x 0",
		"PUBLISH other x",
		"SUBSCRIBE hub:apikeys",
		"PSUBSCRIBE *",
		"MONITOR",
		"TIME",
	)
}

// TestNoticeArrivesInACluster: whichever node it is given to, a gateway at another one hears it.
func TestNoticeArrivesInACluster(t *testing.T) {
	t.Parallel()
	masters, replica, url := hubtest.RedisCluster(t)
	hubtest.GiveRedisUsers(t, append(masters, replica)...)
	url = strings.Replace(url, "redis://", "redis://hub_auth:hub_auth@", 1)
	for _, node := range masters {
		gateway := goredis.NewClient(&goredis.Options{Addr: node.Addr()})
		t.Cleanup(func() { _ = gateway.Close() })
		subscription := gateway.Subscribe(t.Context(), "hub:apikeys")
		if _, err := subscription.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := open(t, url).Publish(t.Context(), "ak_1"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-subscription.Channel():
		case <-time.After(time.Minute):
			t.Error("no notice")
		}
	}
}

func TestFailuresComeSoon(t *testing.T) {
	t.Parallel()
	dead, hung := hubtest.NewRedis(t), hubtest.NewRedis(t)
	dead.Kill()
	if err := hung.Pause(); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"dead": dead.URL(0), "hung": hung.URL(0)} {
		hubtest.Within(t, 3*time.Second, "a notice to a Redis that is "+name, func() {
			if err := open(t, url).Publish(t.Context(), "ak_1"); err == nil {
				t.Errorf("%s: no error", name)
			}
		})
	}
}

func TestBadURLNamesTheSetting(t *testing.T) {
	for _, url := range []string{"", "http://u:hunter2@host", "redis://u:hunter2@host:port", "redis://u:hunter2@host/\x00",
		"redis://u:hunter2@host?cluster=perhaps"} {
		if _, err := redis.Open(
			url,
		); err == nil || !strings.Contains(err.Error(), "HUB_REDIS_URL") ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
