package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"hub.internal/k8s/policy"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/seal"
)

// TestDrawnSecretsAreThoseThatTheManifestsMount, no more and no fewer, and the programs can read them.
func TestDrawnSecretsAreThoseThatTheManifestsMount(t *testing.T) {
	root := hubtest.Root(t)
	programs, err := policy.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Render(filepath.Join(root, "k8s", "overlays", "local"))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Secrets(m, programs)
	drawn, err := draw(programs.Services)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]string{}
	for _, s := range drawn.Items {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := new(policy.Manifests).Add(b); err != nil {
			t.Error(err)
		}
		name := s.Name
		got[name] = s.StringData
		for key := range s.StringData {
			if want[name][key] == nil && name != "stores" {
				t.Errorf("nobody reads %s of %s", key, name)
			}
		}
	}
	for name, keys := range want {
		for key := range keys {
			if _, there := got[name][key]; !there {
				t.Errorf("%s has no %s", name, key)
			}
		}
	}
	var trusted caller.TrustedKeys
	if err := trusted.UnmarshalText([]byte(got["trusted-keys"]["trusted-keys"])); err != nil {
		t.Fatal(err)
	}
	for _, s := range programs.Services {
		var key caller.SigningKey
		if err := key.UnmarshalText([]byte(got[s.Name]["signing-key"])); err != nil {
			t.Fatal(err)
		}
		if _, err := caller.NewKeys(s.Name, key, trusted, time.Now); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if s.Has(inventory.Keyset) {
			if _, err := seal.Open(got[s.Name]["secrets-keyset"]); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
}
