package main

// The peers are held at exact versions, which a person raises together with the kept report.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// peers are what Hub is held against beside the bare SQL, in the order of their start: one may stand in front of an earlier one.
var peers = []struct {
	name, title string
	start       func(context.Context, *stack, []*workload, func(string, ...any)) (target, error)
}{
	{toolboxName, toolboxPackage + " " + toolboxVersion, startToolbox},
	{nginxName, "nginx with a key and a limit in front of toolbox", startNginx},
	{dbhubName, dbhubPackage + " " + dbhubVersion, startDBHub},
}

// startPeers starts the peers. One that cannot be had, for lack of a network, of npm or of a program, is left out, and skipped says why.
func startPeers(ctx context.Context, s *stack, works []*workload, say func(string, ...any)) (targets []target, skipped string) {
	for _, p := range peers {
		t, err := p.start(ctx, s, works, say)
		if err != nil {
			why := fmt.Sprintf("Skipped %s (%s): %v.", p.name, p.title, err)
			say("%s", why)
			skipped += why + "\n\n"
			continue
		}
		targets = append(targets, t)
	}
	return targets, skipped
}

// isPeer tells whether a target is one of them: it answers what a single statement can say.
func isPeer(name string) bool {
	for _, p := range peers {
		if p.name == name {
			return true
		}
	}
	return false
}

// npmArch is this machine's architecture by npm's name.
func npmArch() string { return map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH] }

// npmPackage installs a package at its exact version into the user's cache, outside the checkout, once, and returns the directory that
// holds node_modules. No script of a package runs during the installation.
func npmPackage(ctx context.Context, name, version string, say func(string, ...any)) (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", errors.New("npm is not on the PATH")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "hub", "npm", strings.NewReplacer("@", "", "/", "-").Replace(name)+"-"+version)
	if _, err := os.Stat(filepath.Join(dir, "node_modules", name, "package.json")); err == nil {
		return dir, nil
	}
	say("installing %s %s into %s", name, version, dir)
	making := dir + ".making" // renamed when whole
	if err := errors.Join(os.RemoveAll(making), os.RemoveAll(dir), os.MkdirAll(making, 0o755)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // the largest has 100 MB
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", making, "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact",
		name+"@"+version)
	// npm may leave processes behind that hold the pipe.
	cmd.Dir, cmd.WaitDelay = making, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w: %.400s", name, err, out)
	}
	return dir, os.Rename(making, dir)
}
