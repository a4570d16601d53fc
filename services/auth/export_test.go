package auth

import "time"

// Checksum and Hashes open the key format to its tests.
var Checksum = checksum

func (p Peppers) Hashes(s Secret) []Hash { return p.hashes(s) }

// Occupy takes every turn of hashing a password until free, for those who wait no longer than patience.
func (p *People) Occupy(patience time.Duration) (free func()) {
	p.passwords.patience = patience
	for range cap(p.passwords.slots) {
		p.passwords.slots <- struct{}{}
	}
	return func() {
		for range cap(p.passwords.slots) {
			<-p.passwords.slots
		}
	}
}
