package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// installLimit bounds the download of a package, which may be 100 MB.
const installLimit = 5 * time.Minute

// npmPackage installs a package at an exact version into the user's cache, outside the
// checkout, once. It answers the directory that holds node_modules. No script of the
// package runs during the installation.
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
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", making, "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact",
		name+"@"+version)
	cmd.Dir, cmd.WaitDelay = making, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s@%s: %w: %.400s", name, version, err, out)
	}
	return dir, os.Rename(making, dir)
}

// nodeVersion is the major and minor version of node on the PATH.
func nodeVersion(ctx context.Context) (text string, major, minor int, err error) {
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return "", 0, 0, errors.New("node is not on the PATH")
	}
	text = strings.TrimSpace(string(out))
	parts := strings.SplitN(strings.TrimPrefix(text, "v"), ".", 3)
	if len(parts) == 3 {
		major, err = strconv.Atoi(parts[0])
		if err == nil {
			minor, err = strconv.Atoi(parts[1])
		}
		return text, major, minor, err
	}
	return text, 0, 0, fmt.Errorf("node --version says %q", text)
}

// startPeers starts the peers that can be had here; skipped says of the others why not.
func startPeers(ctx context.Context, s *stack, works []*workload, say func(string, ...any)) (peers []target, skipped []string) {
	for _, p := range []struct {
		name  string
		start func(context.Context, *stack, []*workload, func(string, ...any)) (target, error)
	}{{"toolbox (@toolbox-sdk/server " + toolboxVersion + ")", startToolbox}, {"dbhub (@bytebase/dbhub " + dbhubVersion + ")", startDBHub}} {
		t, err := p.start(ctx, s, works, say)
		if err != nil {
			say("skipped %s: %v", p.name, err)
			skipped = append(skipped, fmt.Sprintf("%s: %v", p.name, err))
			continue
		}
		peers = append(peers, t)
	}
	return peers, skipped
}
