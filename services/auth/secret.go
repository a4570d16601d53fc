package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/services/auth/apps"
)

// A key is prefix, 36 random digits and 6 digits of the CRC32 of all before. The sum
// turns typos away before the store is asked; it proves nothing.
const (
	prefix       = "crm_"
	digits       = apps.Base62
	randomDigits = 36
	sumDigits    = 6
	bodyLength   = len(prefix) + randomDigits
	secretLength = bodyLength + sumDigits
	// headLength and tailLength are what of a key may be shown, so that people can tell keys apart.
	headLength = 8
	tailLength = 4
)

// Secret is an API key in clear. It exists where a key is issued or verified, and
// shows itself to nobody who does not call Reveal.
type Secret struct{ text.Secret }

// NewSecret draws a key: 36 base62 digits hold 214 bits.
func NewSecret() Secret {
	key := append(make([]byte, 0, secretLength), prefix...)
	var drawn [64]byte
	for len(key) < bodyLength {
		_, _ = rand.Read(drawn[:]) // ends the program rather than fail
		for _, b := range drawn {
			// Six bits that name no digit are thrown away: a remainder would prefer some digits.
			if b &= 63; int(b) < len(digits) && len(key) < bodyLength {
				key = append(key, digits[b])
			}
		}
	}
	return Secret{text.Secret(append(key, apps.Checksum(string(key))...))}
}

// ParseSecret reads a key and refuses one that cannot have been issued, with the same
// fault as one that was not.
func ParseSecret(key string) (Secret, error) {
	if len(key) != secretLength || !strings.HasPrefix(key, prefix) || strings.Trim(key[len(prefix):], digits) != "" ||
		apps.Checksum(key[:bodyLength]) != key[bodyLength:] {
		return Secret{}, invalid()
	}
	return Secret{text.Secret(key)}, nil
}

// invalid is the one answer to a key that Hub has not issued.
func invalid() error { return fault.New(fault.AuthInvalid, "The API key is not valid.") }

// Head is the first eight characters, which may be shown and stored.
func (s Secret) Head() string { return s.Reveal()[:headLength] }

// Tail is the last four characters, which may be shown and stored.
func (s Secret) Tail() string { return s.Reveal()[secretLength-tailLength:] }

// Hash is what the store keeps of a key: HMAC-SHA256 under a pepper that the store does
// not have. No slow hash: a key has 214 random bits and is verified on every call.
type Hash [sha256.Size]byte

// minPepper is the least length of a pepper, in bytes.
const minPepper = 32

// Peppers hash keys. New keys are hashed under the current pepper; the previous one
// still verifies, while the keys that it hashed are rotated.
type Peppers struct{ all []pepper }

// pepper is a secret key of HMAC, and the name that it has in the store.
type pepper struct {
	id     string
	secret []byte
}

// NewPeppers takes the current pepper and the previous one, which may be empty.
func NewPeppers(current, previous string) (Peppers, error) {
	var p Peppers
	for _, s := range []struct{ setting, value string }{{"HUB_KEY_PEPPER", current}, {"HUB_KEY_PEPPER_PREVIOUS", previous}} {
		if s.value == "" && len(p.all) > 0 {
			break
		}
		if len(s.value) < minPepper {
			return Peppers{}, fmt.Errorf("%s has %d characters; at least %d are needed", s.setting, len(s.value), minPepper)
		}
		sum := sha256.Sum256([]byte("hub api key pepper id\x00" + s.value))
		p.all = append(p.all, pepper{hex.EncodeToString(sum[:4]), []byte(s.value)})
	}
	if len(p.all) == 2 && p.all[0].id == p.all[1].id {
		p.all = p.all[:1]
	}
	return p, nil
}

// IDs names the peppers without telling them, the current one first.
func (p Peppers) IDs() []string {
	ids := make([]string, len(p.all))
	for i := range p.all {
		ids[i] = p.all[i].id
	}
	return ids
}

// hashes returns the hash of a key under each pepper, the current one first.
func (p Peppers) hashes(s Secret) []Hash {
	out := make([]Hash, len(p.all))
	for i := range p.all {
		mac := hmac.New(sha256.New, p.all[i].secret)
		mac.Write([]byte(s.Reveal()))
		mac.Sum(out[i][:0])
	}
	return out
}

// matches tells, in constant time, whether found is one of the hashes.
func matches(hashes []Hash, found Hash) bool {
	equal := 0
	for i := range hashes {
		equal |= subtle.ConstantTimeCompare(hashes[i][:], found[:])
	}
	return equal == 1
}
