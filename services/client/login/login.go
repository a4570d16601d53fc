// Package login finds the address and the key of a gateway: in the environment, or in the file that hub login keeps. It
// refuses to send a key anywhere but where it was stored for, and to read one that others can read.
package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hub.internal/services/client"
)

// maxFile bounds a file with keys, in bytes.
const maxFile = 1 << 20

// Sources are where an address and a key are looked for, the first that has one first: URL, the environment, Dir.
type Sources struct {
	// URL is that of the flag --url.
	URL string
	// Env is the environment: HUB_URL, HUB_API_KEY, HUB_API_KEY_FILE.
	Env func(string) string
	// Dir holds the file; HUB_CONFIG_DIR, or hub in the user's own directory.
	Dir string
	// AllowHTTP allows http to other machines.
	AllowHTTP bool
}

// Found is a value and where it was found.
type Found struct{ Value, From string }

// loginFile is what hub login keeps.
type loginFile struct {
	// Current is the address that is meant when none is named.
	// The address is clean, as client.Address returns it, so that it is found again however it is typed.
	Current string `json:"current"`
	// Keys are the API keys by address.
	Keys map[string]string `json:"keys"`
}

const (
	// The places, as messages name them.
	fromFlag  = "--url"
	fromLogin = "the address of hub login"
	devEnv    = " (after make up: . .hub/dev.env)"
)

// Address returns the gateway's address, clean.
// The first place that has one decides, also when what it has cannot be used: a typing error must not lead to another
// gateway.
func (s Sources) Address() (Found, error) {
	found := Found{s.URL, fromFlag}
	if found.Value == "" {
		found = Found{s.Env("HUB_URL"), "HUB_URL"}
	}
	if found.Value == "" {
		f, err := s.load(true)
		if err != nil {
			return Found{}, err
		}
		found = Found{f.Current, fromLogin}
	}
	if found.Value == "" {
		return Found{}, errors.New("HUB_URL is not set: hub login, or export HUB_URL" + devEnv)
	}
	var err error
	found.Value, err = client.Address(found.Value, found.From, s.AllowHTTP)
	return found, err
}

// Key returns the API key for an address.
// The environment's is for any address; a stored one is only for its own.
func (s Sources) Key(address string) (Found, error) {
	if key := s.Env("HUB_API_KEY"); key != "" {
		return checkedKey(key, "HUB_API_KEY")
	}
	if path := s.Env("HUB_API_KEY_FILE"); path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return Found{}, fmt.Errorf("HUB_API_KEY_FILE: %w", err)
		}
		return checkedKey(string(b), "HUB_API_KEY_FILE")
	}
	f, err := s.load(true)
	if err != nil {
		return Found{}, err
	}
	if key := f.Keys[address]; key != "" {
		return checkedKey(key, "hub login")
	}
	if len(f.Keys) > 0 {
		return Found{}, fmt.Errorf("HUB_API_KEY is not set, and hub login has no key for %s: hub login --url %s, or export HUB_API_KEY",
			address, address)
	}
	return Found{}, errors.New("HUB_API_KEY is not set: hub login, or export HUB_API_KEY" + devEnv)
}

// checkedKey checks that a key can be sent. Its value is in no message.
func checkedKey(key, from string) (Found, error) {
	key, err := Check(key)
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", from, err)
	}
	return Found{key, from}, nil
}

// Check returns a key without the space around it, or says why it cannot be one.
// 4,096 characters are the most.
func Check(key string) (string, error) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return "", errors.New("the key is empty")
	case len(key) > 4096 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the key has spaces or other characters that no key has")
	}
	return key, nil
}

// Store keeps the key for an address, and makes the address the current one.
// A file that is damaged is written anew; one that others can read is refused, as everywhere.
func (s Sources) Store(address, key string) error {
	f, err := s.load(true)
	var broken *json.SyntaxError
	if err != nil && !errors.As(err, &broken) {
		return err
	}
	if f.Keys == nil {
		f.Keys = map[string]string{}
	}
	f.Current, f.Keys[address] = address, key
	return s.save(f)
}

// Forget removes the key for an address; for "" that of the current one. It returns the address, or "" when there was no key.
func (s Sources) Forget(address string) (string, error) {
	// Whoever takes a key away may do so though others could read it.
	f, err := s.load(false)
	if err != nil {
		return "", err
	}
	if address == "" {
		address = f.Current
	}
	if _, there := f.Keys[address]; !there {
		return "", nil
	}
	delete(f.Keys, address)
	if f.Current == address {
		f.Current = ""
	}
	if len(f.Keys) == 0 {
		return address, os.Remove(s.Path())
	}
	return address, s.save(f)
}

// Path is that of the file.
func (s Sources) Path() string { return filepath.Join(s.Dir, "login.json") }

// load reads the file, and an absent one as empty. With private, one that others can read is refused.
func (s Sources) load(private bool) (f loginFile, err error) {
	opened, err := os.Open(s.Path())
	if errors.Is(err, os.ErrNotExist) || s.Dir == "" {
		return loginFile{}, nil
	}
	if err != nil {
		return loginFile{}, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return loginFile{}, err
	}
	// On Windows the mode says nothing: the user's directory is the user's alone.
	if open := info.Mode().Perm() & 0o077; private && open != 0 && runtime.GOOS != "windows" {
		return loginFile{}, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 %s, and have a new key issued if others use this machine",
			s.Path(), info.Mode().Perm(), s.Path())
	}
	b, err := io.ReadAll(io.LimitReader(opened, maxFile))
	if err != nil {
		return loginFile{}, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return loginFile{}, fmt.Errorf("%s is damaged; hub login writes it anew: %w", s.Path(), err)
	}
	return f, nil
}

// save writes the file at once, in a directory that the user alone can open.
func (s Sources) save(f loginFile) error {
	if s.Dir == "" {
		return errors.New("there is no directory to keep the key in: set HUB_CONFIG_DIR")
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return client.Replace(s.Path(), append(b, '\n'))
}
