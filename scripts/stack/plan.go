package main

import (
	"encoding/json"
	"time"
)

// plan is what the supervisor is to run. `up` writes it and sends SIGHUP; the supervisor
// compares it with what runs and changes only what differs.
type plan struct {
	// It counts plans from 1; a later one is greater.
	Generation int64
	Servers    []serverSpec
	Services   []serviceSpec
}

// serverSpec is a MariaDB, MySQL, PostgreSQL, Redis or Consul server.
type serverSpec struct {
	Name     string // which of the five
	Port     int
	Password string `json:",omitempty"`
	Users    string `json:",omitempty"` // of Redis
}

// serviceSpec is one of Hub's services, or the mail sink.
type serviceSpec struct {
	Name   string
	Path   string
	Digest string // of the program's file: another build restarts the service
	Args   []string
	Env    []string
	Layer  int // lower layers stop first
}

// key is equal for specs that need no restart.
func key(spec any) string {
	b, err := json.Marshal(spec)
	if err != nil {
		panic(err) // plain data
	}
	return string(b)
}

// status is what the supervisor says of itself.
type status struct {
	PID    int
	Digest string // of the supervisor's own program
	// Seen is the generation of the last plan that was read, Applied that of the last plan
	// whose programs have all been started, or have failed to.
	Seen, Applied int64
	Programs      map[string]programStatus
}

// programStatus is the state of one service or server.
type programStatus struct {
	PID      int       `json:",omitempty"` // 0 while it does not run
	Since    time.Time // of the last change
	Restarts int       // since the supervisor took it on
	Error    string    `json:",omitempty"` // why it ended or did not start, the last time
	// Admin is where a server's administrator connects; it works for this user only.
	Admin string `json:",omitempty"`
}
