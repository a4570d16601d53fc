package reviewcontrol

import (
	"strings"
	"time"
)

// Suppression is an address that no mail goes to.
type Suppression struct {
	// Email is the address as it was given; it matches without regard to case.
	Email, Reason, Source string
	// By is who added it: a console user's address, empty for an unsubscription.
	By string
	At time.Time
}

// The sources of a suppression.
const (
	FromConsole     = "console"
	FromImport      = "import"
	FromUnsubscribe = "unsubscribe"
)

// EmailKey is what an address is matched by.
func EmailKey(email string) string { return strings.ToLower(email) }

// EmailDomain is the domain of an address, in lower case.
func EmailDomain(email string) string {
	return EmailKey(email[strings.LastIndexByte(email, '@')+1:])
}

// Import is a file of addresses on its way to the suppression list.
type Import struct {
	ID               ID
	Name, Reason, By string
	At               time.Time
	// Status is one of the states of an import.
	Status string
	// Lines is the number of entries in the file, Done how many were read; these were Added
	// to the list, Known on it before, or Bad.
	Lines, Done, Added, Known, Bad int
	Finished                       *time.Time
}

// The states of an import.
const (
	ImportWaiting = "waiting"
	ImportRunning = "running"
	ImportDone    = "done"
)

const (
	// MaxImport bounds a file, in bytes.
	MaxImport = 16 << 20
	// MaxBadLines is how many of an import's bad lines are kept; all are counted.
	MaxBadLines = 1000
	// maxBadText bounds what is kept of a bad line, in characters.
	maxBadText = 200
	// importBatch is how many entries are stored at once.
	importBatch = 1000
)

// BadLine is an entry of a file that is no address.
type BadLine struct {
	Line         int
	Text, Reason string
}
