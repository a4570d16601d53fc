package localserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// find locates a program on the PATH or in the directories that distributions keep off it.
// The first name that is found counts: distributions call one program by several.
func find(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
			if path := filepath.Join(dir, name); executable(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("program %s not found", names[0])
}

// executable tells whether a path is a program.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// postgresPrograms is the directory of PostgreSQL's server programs: those of the version
// that made the data directory, else the newest.
// Debian keeps each version in a folder of its own, which is on no PATH.
func postgresPrograms(dataVersion string) (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "postgres")) && executable(filepath.Join(dir, "initdb")) &&
			(dataVersion == "" || strconv.Itoa(version(dir)) == dataVersion) {
			return dir, nil
		}
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	if dataVersion != "" && len(dirs) > 0 {
		return "", fmt.Errorf("the data were made by PostgreSQL %s, whose programs are not installed: install postgresql-%s or remove the data",
			dataVersion, strings.TrimSpace(dataVersion))
	}
	return "", fmt.Errorf("program postgres not found")
}

// chosen is the program that a variable of the environment names, or "" where the variable is not set.
func chosen(variable string) (string, error) {
	path := os.Getenv(variable)
	if path != "" && !executable(path) {
		return "", fmt.Errorf("%s=%s is not a program", variable, path)
	}
	return path, nil
}

// ChromiumPath is the browser: $HUB_CHROMIUM, else the Chromium or Chrome that is installed. The one that has no windows of its own
// takes half of the time of the others.
func ChromiumPath() (string, error) {
	if path, err := chosen("HUB_CHROMIUM"); path != "" || err != nil {
		return path, err
	}
	return find("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
}

// ConsulVersion is the Consul that scripts/consul builds and Hub is tested with.
const ConsulVersion = "1.14.11"

// ConsulPath is the Consul binary: $HUB_CONSUL, else the one that scripts/consul built into
// the user's cache. It reports an error when there is none: Consul is optional.
func ConsulPath() (string, error) {
	if path, err := chosen("HUB_CONSUL"); path != "" || err != nil {
		return path, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "hub", "bin", "consul-"+ConsulVersion)
	if !executable(path) {
		return "", fmt.Errorf("no Consul at %s (scripts/consul builds it)", path)
	}
	return path, nil
}
