package config_test

import (
	"fmt"
	"testing"

	"hub.internal/pkg/config"
)

// TestAPasswordIsEncoded: what is no URL as it stands is refused by its setting's name, without a word of it.
func TestAPasswordIsEncoded(t *testing.T) {
	t.Parallel()
	type Store struct {
		URL config.Secret `env:"HUB_STORE_URL"`
	}
	type settings struct {
		Store
		Redis config.Secret `env:"HUB_REDIS_URL"`
		Page  string        `env:"HUB_PAGE_URL"`
	}
	for value, refused := range map[string]bool{
		"postgres://hub_auth:p@ss/w#rd@127.0.0.1:5432/hub":           true,
		"postgres://hub_auth:p@ss?w@127.0.0.1:5432/hub":              true,
		"postgresql://hub_auth:1/2@127.0.0.1:5432/hub":               true,
		"redis://:p@ss#word@127.0.0.1:6379/0":                        true,
		"rediss://:p@ss#word@127.0.0.1:6379?cluster=true":            true,
		"postgres://hub_auth:p%40ss%2Fw%23rd@127.0.0.1:5432/hub":     false,
		"postgres://hub_auth:p@ss@127.0.0.1:5432/hub":                false, // the last one ends it
		"postgres:///hub?host=/run/a@b&user=hub_auth&password=p@ss":  false,
		"postgres://hub_auth@127.0.0.1/hub?application_name=a@b":     false,
		"postgres://hub_auth:word@[::1]:5432,db/hub?sslmode=disable": false,
		"host=127.0.0.1 password=p@ss/w#rd@x":                        false,
		"https://hub.example/@somebody":                              false,
		"":                                                           false,
	} {
		for _, name := range []string{"HUB_STORE_URL", "HUB_REDIS_URL"} {
			_, err := config.Load[settings]([]string{name + "=" + value, "HUB_PAGE_URL=" + value})
			if want := "configuration: " + name + ": percent-encode the password"; refused != (err != nil) || refused && fmt.Sprint(err) != want {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
}
