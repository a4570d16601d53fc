package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestDoctorOfTheStack: each service's lines under its name, and no doctor that breaks goes unnoticed.
func TestDoctorOfTheStack(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	serve := func(name, path string, env ...string) serviceSpec {
		return serviceSpec{Name: name, Path: path, Args: []string{"serve"}, Env: append(env, "PATH=/usr/bin:/bin")}
	}
	var out bytes.Buffer
	if err := doctor(t.Context(), c.layout, &out); err == nil || !strings.Contains(err.Error(), "make up") {
		t.Errorf("before anything is set up: %v", err)
	}
	script := func(name, text string) string {
		if err := os.WriteFile(c.bin(name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return c.bin(name)
	}
	well, ill := script("well", `echo "ok     $1 of $HUB_X"`), script("ill", `echo "ok     first"; echo "wrong  second"; exit 1`)
	broken := script("broken", `echo "panic: nil" >&2; exit 2`)
	p := plan{Services: []serviceSpec{serve("query", well, "HUB_X=its own"), {Name: mailSink, Path: broken, Args: []string{"--smtp"}}}}
	if err := writeJSON(c.plan(), p, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := doctor(t.Context(), c.layout, &out); err != nil || out.String() != "query           ok     doctor of its own\n" {
		t.Errorf("%v\n%s", err, &out)
	}
	p.Services = append(p.Services, serve("auth", ill), serve("admin", broken), serve("payments", "/nowhere"))
	if err := writeJSON(c.plan(), p, 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	err := doctor(t.Context(), c.layout, &out)
	want := "query           ok     doctor of its own\nauth            ok     first\nauth            wrong  second\n" +
		"admin           wrong  program: exit status 2: panic: nil\npayments        wrong  program: fork/exec /nowhere: " +
		"no such file or directory\n"
	if err == nil || out.String() != want {
		t.Errorf("%v\n%s", err, &out)
	}
}
