package auth

// Checksum and Hashes open the key format to its tests.
var Checksum = checksum

func (p Peppers) Hashes(s Secret) []Hash { return p.hashes(s) }
