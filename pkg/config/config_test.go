package config_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/config"
)

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type Embedded struct {
		Level slog.Level `env:"HUB_LEVEL" envDefault:"info"`
		Count int        `env:"HUB_COUNT"`
	}
	type exported struct {
		Embedded
		Addr    string          `env:"HUB_ADDR,required,notEmpty"`
		Timeout time.Duration   `env:"HUB_TIMEOUT" envDefault:"2s"`
		Secret  config.Secret   `env:"HUB_SECRET"`
		Keys    []config.Secret `env:"HUB_KEYS"`
	}
	for name, c := range map[string]struct {
		environ []string
		err     string
	}{
		"all":         {[]string{"HUB_ADDR=:1", "HUB_SECRET_FILE=" + file, "HUB_KEYS=hunter2,hunter22"}, ""},
		"missing":     {nil, "HUB_ADDR"},
		"empty":       {[]string{"HUB_ADDR="}, "HUB_ADDR"},
		"bad":         {[]string{"HUB_ADDR=:1", "HUB_TIMEOUT=soon"}, "HUB_TIMEOUT"},
		"bad, deeper": {[]string{"HUB_ADDR=:1", "HUB_LEVEL=loud"}, "HUB_LEVEL"},
		"all at once": {[]string{"HUB_COUNT=many", "HUB_TIMEOUT=soon"}, "HUB_COUNT"},
		"no file":     {[]string{"HUB_ADDR=:1", "HUB_SECRET_FILE=/does/not/exist"}, "HUB_SECRET_FILE"},
		"said twice":  {[]string{"HUB_ADDR=:1", "HUB_SECRET=x", "HUB_SECRET_FILE=" + file}, "HUB_SECRET"},
		"not a HUB_X": {[]string{"HUB_ADDR=:1", "OTHER_FILE=/does/not/exist"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load[exported](c.environ)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %v, want one line with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if name == "all" && (got.Secret.Reveal() != "hunter2" || got.Timeout != 2*time.Second || len(got.Keys) != 2) {
				t.Errorf("got %+v", got)
			}
			if name == "all at once" && (!strings.Contains(err.Error(), "HUB_TIMEOUT") || !strings.Contains(err.Error(), "HUB_ADDR")) {
				t.Errorf("not every setting is named: %v", err)
			}
			var out bytes.Buffer
			slog.New(slog.NewJSONHandler(&out, nil)).Info("configuration", "settings", config.LogValue(got))
			if strings.Contains(out.String(), "hunter2") {
				t.Errorf("the log line shows a secret: %s", out.String())
			}
		})
	}
}
