package policy

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reads lists Secrets and keys, one a line.
func reads(secrets map[string]map[string][]string) (list []string) {
	for secret, keys := range secrets {
		for key := range keys {
			list = append(list, secret+"/"+key)
		}
	}
	return slices.Sorted(slices.Values(list))
}

// TestSecretsAreAsWritten: the example and the README's table have every file that a container reads, and no other.
func TestSecretsAreAsWritten(t *testing.T) {
	t.Parallel()
	want := reads(Secrets(overlay(t, "production"), loaded(t)))

	example, err := os.ReadFile(at(t, "k8s", "overlays", "production", "secrets.example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	given := &Manifests{}
	for _, text := range strings.Split(string(example), "\n---\n") {
		if err := given.Add([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var shown []string
	for _, s := range given.Secrets {
		for key := range maps.Keys(s.StringData) {
			shown = append(shown, s.Name+"/"+key)
		}
	}
	if slices.Sort(shown); !slices.Equal(shown, want) {
		t.Errorf("secrets.example.yaml has\n%v, the services read\n%v", shown, want)
	}

	readme, err := os.ReadFile(at(t, "k8s", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	rows := regexp.MustCompile("(?m)^\\| (`[a-z`, -]+|each service's) \\| `([a-z-]+)` \\|")
	for _, row := range rows.FindAllStringSubmatch(string(readme), -1) {
		names := strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")
		if row[1] == "each service's" {
			names = loaded(t).Services.Names()
		}
		for _, name := range names {
			table = append(table, fmt.Sprintf("%s/%s", strings.TrimSpace(name), row[2]))
		}
	}
	if slices.Sort(table); !slices.Equal(table, want) {
		t.Errorf("k8s/README.md has\n%v, the services read\n%v", table, want)
	}
}
