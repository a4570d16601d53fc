package service

import (
	_ "time/tzdata" // an image holds nothing but the program

	_ "golang.org/x/crypto/x509roots/fallback" // Mozilla's roots, for a machine without any; SSL_CERT_FILE names others
)

// release is set by the linker alone, in a program that is built to be released:
//
//	-ldflags '-X hub.internal/pkg/service.release=v1.2.3'
var release = "dev"

// Release is the tag that the program was built from, as v1.2.3, or dev: what --version, /healthz and the metric target_info say.
func Release() string { return release }
