package auth

import (
	"context"
	"time"

	"github.com/alexedwards/argon2id"

	"hub.internal/services/auth/bulkhead"
)

// Cheap is People whose passwords cost next to nothing, which under the race detector take a third of a second each.
func (c PeopleConfig) Cheap() PeopleConfig {
	c.cost = &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	return c
}

// Hashes opens the key format to its tests.
func (p Peppers) Hashes(s Secret) []Hash { return p.hashes(s) }

// Occupy takes every turn of hashing a password until free, for those who wait no longer than patience.
func (p *People) Occupy(t interface{ Fatal(...any) }, patience time.Duration) (free func()) {
	p.passwords.bulkhead = bulkhead.New(bulkhead.Options{AtOnce: 1, Waiting: 4, Patience: patience, Now: p.c.Now})
	turn, err := p.passwords.bulkhead.Acquire(context.Background(), bulkhead.Known("the test"))
	if err != nil {
		t.Fatal(err)
	}
	return turn.Release
}
