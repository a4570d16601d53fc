package main

// Licences are read from the files in the module cache and not looked up: what is checked is what is used.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"hub.internal/pkg/inventory"
)

// permitted are the licences that a program of a release may use code under, by their SPDX names. MPL-2.0 asks for the sources of its
// own files where they were changed: Hub changes none.
var permitted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense"}

// module is a module that a program is made of.
type module struct {
	// As go list has them; Dir is the folder with its files, and Main tells a module of the workspace.
	Path, Version, Dir string
	Main               bool
}

// own tells whether the module is one of Hub's.
func (m module) own() bool { return strings.HasPrefix(m.Path, "hub.internal/") }

// modules are those that the program of a service has packages of, by their paths.
func modules(ctx context.Context, root, service string) (map[string]module, error) {
	e := edition{root: root, service: service}
	out, err := e.command(ctx, "list", "-deps", "-json=Module", e.mainPackage()).Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", e.module(), err)
	}
	used := map[string]module{}
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return used, nil
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil { // the standard library has none
			used[p.Module.Path] = *p.Module
		}
	}
}

// LICENSE, LICENCE-MIT, UNLICENSE, COPYING and the like.
var licenceFile = regexp.MustCompile(`(?i)^(un)?licen[cs]e([-.].*)?$|^copying([-.].*)?$`)

// licencesOf are the SPDX names of the licences at the root of a module.
// None is no error here: allowed says what that means.
func licencesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range entries {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		for _, m := range licensecheck.Scan(text).Match {
			// An address that a text mentions is no licence by itself.
			if !m.IsURL && !slices.Contains(names, m.ID) {
				names = append(names, m.ID)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// allowed is an error that names each module whose licence is not permitted, or not known.
func allowed(used map[string]module) error {
	var errs []error
	for _, m := range sorted(used) {
		if m.own() {
			continue
		}
		names, err := licencesOf(m.Dir)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			errs = append(errs, fmt.Errorf("%s %s has no licence that is known", m.Path, m.Version))
		}
		for _, name := range names {
			if !slices.Contains(permitted, name) {
				errs = append(errs, fmt.Errorf("%s %s is under %s, which is not permitted (scripts/release/licence.go)", m.Path, m.Version, name))
			}
		}
	}
	return errors.Join(errs...)
}

// sorted lists modules by their paths, so that messages come in a fixed order.
func sorted(used map[string]module) []module {
	return slices.SortedFunc(maps.Values(used), func(a, b module) int { return strings.Compare(a.Path, b.Path) })
}

// licences checks all services and the client.
func licences(ctx context.Context, root string, out io.Writer) error {
	services, err := inventory.Load(root)
	if err != nil {
		return err
	}
	all := map[string]module{}
	for _, name := range append(services.Names(), inventory.Client) {
		used, err := modules(ctx, root, name)
		if err != nil {
			return err
		}
		for path, m := range used {
			all[path+"@"+m.Version] = m
		}
	}
	if err := allowed(all); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d modules, each under %s\n", len(all), strings.Join(permitted, ", "))
	return nil
}
