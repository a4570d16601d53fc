package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"

	"hub.internal/pkg/fault"
	"hub.internal/services/auth/bulkhead"
)

// argonParams are OWASP's for argon2id (2024): 19 MiB, two passes. A hash under others still
// verifies, and is replaced when its user signs in.
var argonParams = argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// passwords hashes a bounded number of passwords at a time: each takes memory and a core.
type passwords struct {
	cost     argon2id.Params
	bulkhead *bulkhead.Bulkhead
	// nobody is a hash that no password has: checking it takes as long as a real one.
	nobody string
}

const (
	// hashWaiting is how many strangers wait: what a core hashes in a second or two, and of two replicas together no more than
	// the gateway has places for forms. As many wait who are known.
	hashWaiting = 20
	// hashPatience is how long a password waits for its permit: who waits holds a place at the gateway and here.
	hashPatience = 3 * time.Second
)

// newPasswords leaves half of the cores to what else the process does.
func newPasswords(cost argon2id.Params, now func() time.Time) (*passwords, error) {
	var b [24]byte
	_, _ = rand.Read(b[:])
	nobody, err := argon2id.CreateHash(base64.StdEncoding.EncodeToString(b[:]), &cost)
	if err != nil {
		return nil, fmt.Errorf("argon2id: %w", err)
	}
	slots := max(1, runtime.GOMAXPROCS(0)/2)
	permits := bulkhead.New(bulkhead.Options{AtOnce: slots, Waiting: hashWaiting, Patience: hashPatience, Now: now})
	return &passwords{cost: cost, bulkhead: permits, nobody: nobody}, nil
}

// wait takes a permit; E_RATE_LIMIT when there is none.
func (p *passwords) wait(ctx context.Context, c bulkhead.Claim) (*bulkhead.Permit, error) {
	permit, err := p.bulkhead.Acquire(ctx, c)
	if errors.Is(err, bulkhead.ErrFull) {
		return nil, fault.New(fault.RateLimit, "Too many people sign in at this moment. Try again in a few seconds.").After(hashPatience)
	}
	return permit, err
}

// hash hashes a password of somebody who is known. It waits for a permit.
func (p *passwords) hash(ctx context.Context, password, who string) (string, error) {
	permit, err := p.wait(ctx, bulkhead.Known(who))
	if err != nil {
		return "", err
	}
	defer permit.Release()
	return argon2id.CreateHash(password, &p.cost)
}

// check tells whether a password has the hash, and whether the hash should be made anew. A
// user without a hash takes as long as one with it. It is for who has a permit.
func (p *passwords) check(password, hash string) (ok, outdated bool, err error) {
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
