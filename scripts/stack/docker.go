package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"hub.internal/pkg/inventory"
)

// composeUp hands over to Docker Compose.
// The process becomes docker: its output and exit code are the command's. What docker lacks, such as its engine or the
// compose plugin, it says itself.
func composeUp(l layout) error {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return errors.New("DOCKER=1 needs Docker, which is not installed; plain `make up` needs none")
	}
	if err := composeKeys(l); err != nil {
		return err
	}
	if err := os.Chdir(l.root); err != nil {
		return err
	}
	return syscall.Exec(docker, []string{"docker", "compose", "up", "-d", "--build"}, os.Environ())
}

// composeKeys writes the files that docker-compose.yml mounts as secrets: each service's signing
// key, and whom all believe. A container sees the file with its mode and another user's eyes, so
// the directory is closed and not the file.
func composeKeys(l layout) error {
	if err := l.make(); err != nil {
		return err
	}
	st, err := loadState(l)
	if err != nil {
		return err
	}
	services, err := inventory.Load(l.root)
	if err != nil {
		return err
	}
	e := environment{layout: l, state: st, services: services}
	files := map[string]string{"trusted": e.stack().Trusted()}
	for _, s := range services {
		files[s.Name] = st.signing(s.Name).Key
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(l.keys(), name), []byte(content+"\n"), 0o444); err != nil {
			return err
		}
	}
	return st.save()
}
