// Package service is the shell of every service's program: its command line (serve, migrate,
// manifest) and a Host that owns settings, keys, the write store, the audit log, neighbours, the
// listener, readiness and the ordered stop. A service adds its domain in one build function. It
// refuses to be a container: parts are built in a straight line and handed over.
package service

import (
	"hub.internal/pkg/config"
	"hub.internal/pkg/process"
)

// Settings are those that every service has. A service's own embed them.
type Settings struct {
	process.Settings
	// WriteStoreURL names the service's own role, never the owner.
	WriteStoreURL config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
}

// common is a struct that embeds Settings.
type common interface{ settings() Settings }

func (s Settings) settings() Settings { return s }
