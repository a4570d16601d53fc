package inventory_test

import (
	"regexp"
	"slices"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
)

// TestSettingsAreThoseOfTheProgram: what is read from the source is there, and of the kind that it is.
func TestSettingsAreThoseOfTheProgram(t *testing.T) {
	root := hubtest.Root(t)
	for name, want := range map[string][]inventory.Setting{
		"gateway": {{Name: "HUB_REDIS_URL", Required: true, Secret: true}, {Name: "HUB_TRUSTED_PROXY_HOPS", Default: "0"}},
		"query": {{Name: "HUB_SOURCE_DSN", Secret: true}, {Name: "HUB_SOURCE_DSNS", Secret: true},
			{Name: "MCP_MAX_ROW_LIMIT", Default: "1000"}},
		"review-control": {{Name: "HUB_SMTP_PASSWORD", Secret: true}, {Name: "HUB_SMTP_ADDR", Required: true}},
		"payments":       {{Name: "HUB_SECRETS_KEYSET", Required: true, Secret: true}},
	} {
		service, err := load(t).Find(name)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := inventory.SettingsOf(root, service)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range append(want, inventory.Setting{Name: "HUB_ADDR", Default: "127.0.0.1:0"},
			inventory.Setting{Name: "HUB_SIGNING_KEY", Required: true, Secret: true}, inventory.Setting{Name: "HUB_DRAIN_TIMEOUT", Default: "25s"}) {
			if !slices.Contains(settings.Serve, w) {
				t.Errorf("%s does not read %+v", name, w)
			}
		}
		if _, found := inventory.Find(settings.Serve, "HUB_MIGRATE_URL"); found {
			t.Errorf("%s serves with the owner's password", name)
		}
		if !slices.Contains(settings.Migrate, inventory.Setting{Name: "HUB_MIGRATE_URL", Required: true, Secret: true}) {
			t.Errorf("%s migrates with %+v", name, settings.Migrate)
		}
	}
	admin, err := load(t).Find("admin")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := inventory.SettingsOf(
		root,
		admin,
	); err != nil ||
		!slices.Contains(s.Migrate, inventory.Setting{Name: "HUB_AUDIT_RETENTION"}) {
		t.Errorf("%+v, %v", s.Migrate, err)
	}
}

// TestSettingsAreTold: whoever runs a service finds each setting of its program in its OPERATING.md, or in the README of pkg/service,
// which has those of every program.
func TestSettingsAreTold(t *testing.T) {
	root, shell := hubtest.Root(t), read(t, "pkg", "service", "README.md")
	for _, s := range load(t) {
		settings, err := inventory.SettingsOf(root, s)
		if err != nil {
			t.Fatal(err)
		}
		told := shell + read(t, "services", s.Name, "OPERATING.md")
		for _, setting := range append(settings.Serve, settings.Migrate...) {
			if !regexp.MustCompile(`\b` + setting.Name + `\b`).MatchString(told) {
				t.Errorf("services/%s/OPERATING.md does not say what %s is", s.Name, setting.Name)
			}
		}
	}
}
