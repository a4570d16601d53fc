package main

import (
	"fmt"
	"net/url"
	"time"

	"hub.internal/pkg/service"
	"hub.internal/services/authoring"
)

// settings are those of authoring beside what each service has (OPERATING.md).
type settings struct {
	service.Settings
	Recipients authoring.Policy `env:"HUB_DRAFT_RECIPIENTS" envDefault:"verified"`
	// ContactPause is how long an address and a partner are left alone after a mail; 0 is off.
	ContactPause time.Duration `env:"HUB_CONTACT_PAUSE" envDefault:"168h"`
	// PublicURL is where browsers reach the gateway; without it the address of a page is a path.
	PublicURL string `env:"HUB_PUBLIC_URL"`
}

// Check judges what the types of the settings do not.
func (s settings) Check() error {
	if u, err := url.Parse(s.PublicURL); s.PublicURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("HUB_PUBLIC_URL has to be an http or https URL, not %q", s.PublicURL)
	}
	if s.ContactPause < 0 || s.ContactPause > 365*24*time.Hour {
		return fmt.Errorf("HUB_CONTACT_PAUSE has to be between 0s and 8760h, not %s", s.ContactPause)
	}
	return nil
}
