package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"

	"hub.internal/pkg/fault"
)

// argonParams are OWASP's for argon2id (2024): 19 MiB, two passes. A hash under others still
// verifies, and is replaced when its user signs in.
var argonParams = argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// passwords hashes a bounded number of passwords at a time: each takes memory and a core.
type passwords struct {
	cost  argon2id.Params
	slots chan struct{}
	// patience is how long one waits for its turn.
	patience time.Duration
	// nobody is a hash that no password has: checking it takes as long as a real one.
	nobody string
}

func newPasswords(cost argon2id.Params) (*passwords, error) {
	var b [24]byte
	_, _ = rand.Read(b[:])
	nobody, err := argon2id.CreateHash(base64.StdEncoding.EncodeToString(b[:]), &cost)
	if err != nil {
		return nil, fmt.Errorf("argon2id: %w", err)
	}
	return &passwords{cost: cost, slots: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), patience: hashWait, nobody: nobody}, nil
}

// hashWait is how long a password waits for its turn: who waits holds a place at the gateway and here.
const hashWait = 5 * time.Second

// wait takes a slot; a caller that leaves does not take one. E_RATE_LIMIT when there is none for long.
func (p *passwords) wait(ctx context.Context) error {
	patience := time.NewTimer(p.patience)
	defer patience.Stop()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-patience.C:
		return fault.New(fault.RateLimit, "Too many people sign in at this moment. Try again in a few seconds.").After(hashWait)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	if err := p.wait(ctx); err != nil {
		return "", err
	}
	defer func() { <-p.slots }()
	return argon2id.CreateHash(password, &p.cost)
}

// check tells whether a password has the hash, and whether the hash should be made anew. A
// user without a hash takes as long as one with it.
func (p *passwords) check(ctx context.Context, password, hash string) (ok, outdated bool, err error) {
	if err := p.wait(ctx); err != nil {
		return false, false, err
	}
	defer func() { <-p.slots }()
	known := hash != ""
	if !known {
		hash = p.nobody
	}
	ok, params, err := argon2id.CheckHash(password, hash)
	if err != nil {
		return false, false, fmt.Errorf("a stored password hash cannot be read: %w", err)
	}
	return ok && known, *params != p.cost, nil
}

// Passphrase draws a password for somebody who is told it once: 100 bits in five groups.
func Passphrase() string {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789" // 32, without l, o, 0 and 1
	var b [20]byte
	_, _ = rand.Read(b[:])
	var out strings.Builder
	for i, c := range b {
		if i > 0 && i%4 == 0 {
			out.WriteByte('-')
		}
		out.WriteByte(letters[c&31])
	}
	return out.String()
}
