package localserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// command is how the program of a server is called: the one beside the system where Options.Beside says so, else the system's.
func (s *Server) command(beside SideBySide, program string) ([]string, error) {
	if s.opts.Beside {
		_, argv, err := beside.command()
		return argv, err
	}
	path, err := find(program)
	return []string{path}, err
}

// sideBySidePostgres makes a directory of programs that are called like PostgreSQL's and call those beside the system: initdb
// runs the postgres that lies where it does itself, without its loader.
func sideBySidePostgres(s *Server) (string, error) {
	root, postgres, err := SideBySidePostgres.command()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(s.dir, "bin")
	if err := s.who.own(bin); err != nil {
		return "", err
	}
	real := postgres[len(postgres)-1]
	share := filepath.Join(root, "usr", "share", "postgresql", filepath.Base(filepath.Dir(filepath.Dir(real))))
	initdb := append(postgres[:len(postgres)-1:len(postgres)-1], "--argv0", filepath.Join(bin, "initdb"),
		filepath.Join(filepath.Dir(real), "initdb"), "-L", share)
	for name, argv := range map[string][]string{"postgres": postgres, "initdb": initdb} {
		words := make([]string, len(argv))
		for i, word := range argv {
			words[i] = shellWord(word)
		}
		script, path := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", strings.Join(words, " ")), filepath.Join(bin, name)
		if err := writeFile(path, script, s.who); err != nil {
			return "", err
		}
		if err := os.Chmod(path, 0o700); err != nil {
			return "", err
		}
	}
	return bin, nil
}
