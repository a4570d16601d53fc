package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// composeUp hands over to Docker Compose.
func composeUp(l layout) error {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return errors.New("DOCKER=1 needs Docker, which is not installed; plain `make up` needs none")
	}
	if exec.Command(docker, "info").Run() != nil {
		return errors.New("DOCKER=1 needs a running Docker engine (`docker info` fails); plain `make up` needs none")
	}
	if exec.Command(docker, "compose", "version").Run() != nil {
		return errors.New("DOCKER=1 needs the compose plugin (`docker compose version` fails)")
	}
	if err := os.Chdir(l.root); err != nil {
		return err
	}
	return syscall.Exec(docker, []string{"docker", "compose", "up", "-d", "--build"}, os.Environ())
}
