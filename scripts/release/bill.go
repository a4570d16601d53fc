package main

// The bill of materials says what is in the program, by the program's own build information, and not what go.mod
// allows: a module that no package of is linked is not in it.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"hub.internal/scripts/program"
)

// writeBill writes the bill of materials of the program that was built, as CycloneDX 1.6 in JSON, and returns how many components it
// lists. What is in the program is what its own build information says; used tells where each module's licence is.
func writeBill(e edition, used map[string]module, path string) (int, error) {
	info, err := buildinfo.ReadFile(e.program())
	if err != nil {
		return 0, err
	}
	sum, err := program.Digest(e.program())
	if err != nil {
		return 0, err
	}
	name := "pkg:golang/hub.internal/services/" + e.service + "@" + e.version
	language := strings.TrimPrefix(info.GoVersion, "go")
	// The standard library is a component like any other: its vulnerabilities are the program's.
	components := []cdx.Component{{BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: language,
		PackageURL: "pkg:golang/std@" + language, Licenses: named("BSD-3-Clause")}}
	for _, m := range info.Deps {
		c, err := component(e, m, used)
		if err != nil {
			return 0, err
		}
		components = append(components, c)
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	b := cdx.NewBOM()
	// Nothing in the bill is of the moment at which it is made, so that two of one program are the same bytes.
	b.SerialNumber = serial(sum)
	b.Metadata = &cdx.Metadata{Timestamp: e.at.UTC().Format(time.RFC3339),
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "hub.internal/scripts/release"}}},
		Component: &cdx.Component{BOMRef: name, Type: cdx.ComponentTypeApplication, Name: "hub/" + e.service, Version: e.version,
			PackageURL: name, Licenses: named("Apache-2.0"), Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
			Properties: &[]cdx.Property{{Name: "hub:revision", Value: e.revision}}}}
	if e.deployed() {
		*b.Metadata.Component.Properties = append(*b.Metadata.Component.Properties, cdx.Property{Name: "hub:image", Value: e.image()})
	}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: name, Dependencies: &refs}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(b, cdx.SpecVersion1_6); err != nil {
		return 0, err
	}
	return len(components), os.WriteFile(path, out.Bytes(), 0o644)
}

// component describes one module of the program: its package URL, licences and checksum. A module of Hub's own has
// the version of the release, because it has none of its own.
// A module that go list does not know, and one that is replaced by another, is an error: the bill would be wrong.
func component(e edition, m *debug.Module, used map[string]module) (cdx.Component, error) {
	known, found := used[m.Path]
	if !found {
		return cdx.Component{}, fmt.Errorf("%s is in the program, and none of the modules that its packages are of", m.Path)
	}
	version, licences := m.Version, []string{"Apache-2.0"}
	if known.own() {
		version = e.version
	} else {
		if m.Replace != nil {
			return cdx.Component{}, fmt.Errorf("%s is replaced by %s: a release has what its go.mod names", m.Path, m.Replace.Path)
		}
		var err error
		if licences, err = licencesOf(known.Dir); err != nil {
			return cdx.Component{}, err
		}
	}
	// A plus sign in a version would be read as a space.
	purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: version, PackageURL: purl,
		Licenses: named(licences...)}
	// What go.sum and the checksum database have: the SHA-256 of a list of the files' SHA-256.
	if h1, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		b, err := base64.StdEncoding.DecodeString(h1)
		if err != nil {
			return c, fmt.Errorf("the sum of %s: %w", m.Path, err)
		}
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(b)}}
	}
	return c, nil
}

// named are licences by their SPDX names.
func named(names ...string) *cdx.Licenses {
	list := make(cdx.Licenses, len(names))
	for i, name := range names {
		list[i] = cdx.LicenseChoice{License: &cdx.License{ID: name}}
	}
	return &list
}

// serial is a UUID (RFC 9562, version 8) that is the same for the same program.
func serial(sum string) string {
	u := sha256.Sum256([]byte("hub bill of materials " + sum))
	// The version and the variant of the UUID.
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// vulnerabilities is the check of known vulnerabilities, pinned.
const vulnerabilities = "golang.org/x/vuln/cmd/govulncheck@v1.8.0"

// checkModules checks that the modules are what go.sum says, and that nothing they do is known to be vulnerable. Where the database of
// vulnerabilities cannot be reached it says so: that is no finding, and no clean bill either.
func checkModules(ctx context.Context, e edition, out io.Writer) error {
	if b, err := e.command(ctx, "mod", "verify").CombinedOutput(); err != nil {
		return fmt.Errorf("go mod verify: %w: %s", err, b)
	}
	database := cmp.Or(os.Getenv("GOVULNDB"), "https://vuln.go.dev")
	if err := reachable(ctx, database+"/index/db.json"); err != nil {
		fmt.Fprintf(out, "known vulnerabilities: NOT CHECKED, the database does not answer: %v\n", err)
		return nil
	}
	if b, err := e.command(ctx, "run", vulnerabilities, "-db", database, e.mainPackage()).CombinedOutput(); err != nil {
		return fmt.Errorf("govulncheck: %w: %s", err, b)
	}
	fmt.Fprintln(out, "known vulnerabilities: none that the program reaches")
	return nil
}

// reachable tells within five seconds whether the database of vulnerabilities answers.
func reachable(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// A copy of the database on this machine, for one without a network.
	if path, ok := strings.CutPrefix(url, "file://"); ok {
		_, err := os.Stat(path)
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return nil
}
