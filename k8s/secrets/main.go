// Command secrets draws the Secrets that k8s/overlays/local needs, for development, and prints them for kubectl:
//
//	go run ./k8s/secrets | kubectl -n hub create -f -
//
// Each run draws others. `create` refuses the second time, and so keeps the databases' passwords and theirs the same. The names
// and keys are those of every installation; in production an operator fills them (k8s/README.md).
package main

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/seal"
)

func main() {
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	services, err := inventory.Load(*root)
	if err == nil {
		var list any
		if list, err = draw(services); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(list)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "secrets:", err)
		os.Exit(1)
	}
}

// secrets is a List of Kubernetes, which kubectl creates at once.
type secrets struct {
	metav1.TypeMeta
	Items []corev1.Secret `json:"items"`
}

// add adds a Secret.
func (l *secrets) add(name string, data map[string]string) {
	l.Items = append(l.Items, corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data})
}

// draw makes all of them: the stores are those of the overlay, and one password is that of every role.
func draw(services inventory.Inventory) (secrets, error) {
	l := secrets{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	password := rand.Text()
	l.add("stores", map[string]string{"db-password": password, "postgres-password": rand.Text(), "mysql-root-password": rand.Text()})
	l.add("migrate", map[string]string{"migrate-url": storeURL(postgres.Owner, password)})
	var trusted []string
	for _, s := range services {
		key := caller.NewSigningKey()
		trusted = append(trusted, key.Trusted(s.Name))
		data := map[string]string{"signing-key": key.Reveal()}
		for _, need := range s.Needs {
			if err := give(data, s, need, password); err != nil {
				return l, err
			}
		}
		l.add(s.Name, data)
	}
	l.add("trusted-keys", map[string]string{"trusted-keys": strings.Join(trusted, "\n")})
	return l, nil
}

// give adds what a need of the service takes.
// A need without a secret adds nothing.
func give(data map[string]string, s inventory.Service, need, password string) error {
	switch need {
	case inventory.Store:
		data["write-store-url"] = storeURL(s.Role(), password)
	case inventory.Audit:
		data["audit-url"] = storeURL(postgres.AuditReader, password)
	case inventory.Redis:
		data["redis-url"] = "redis://" + s.Role() + ":" + password + "@redis:6379/0"
	case inventory.Source:
		data["source-dsn"] = "hub_ro:" + password + "@tcp(mysql:3306)/marketplace"
	case inventory.Pepper:
		data["key-pepper"] = rand.Text() + rand.Text()
	case inventory.Mail:
		data["smtp-password"] = "" // the sink asks for none
	case inventory.Keyset:
		keyset, err := seal.NewKeyset()
		if err != nil {
			return err
		}
		data["secrets-keyset"] = keyset
	}
	return nil
}

// storeURL is the overlay's PostgreSQL as a role sees it.
func storeURL(role, password string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Host: "postgres:5432", Path: "/hub", RawQuery: "sslmode=disable"}
	return u.String()
}
