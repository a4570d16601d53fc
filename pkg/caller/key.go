package caller

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// SigningKey is the Ed25519 key that a process signs with. It never shows in a log line.
type SigningKey struct{ private ed25519.PrivateKey }

// NewSigningKey makes a key.
func NewSigningKey() SigningKey {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // the system's source of randomness does not fail
	}
	return SigningKey{private}
}

// UnmarshalText reads PKCS#8: the PEM that `openssl genpkey -algorithm ed25519` writes, or
// what stands between its first and its last line. The error quotes nothing of it.
func (s *SigningKey) UnmarshalText(text []byte) error {
	const armour = "PRIVATE KEY-----"
	body := strings.NewReplacer("-----BEGIN "+armour, "", "-----END "+armour, "").Replace(string(text))
	der, err := base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(body), ""))
	if rest, notDER := asn1.Unmarshal(der, &asn1.RawValue{}); err == nil && notDER == nil && len(rest) == 0 {
		if parsed, err := x509.ParsePKCS8PrivateKey(der); err == nil {
			if private, ok := parsed.(ed25519.PrivateKey); ok {
				s.private = private
				return nil
			}
		}
	}
	return errors.New("is not an Ed25519 key in PKCS#8; `openssl genpkey -algorithm ed25519` makes one")
}

// MarshalText masks the key.
func (s SigningKey) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue masks the key for slog.
func (s SigningKey) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String is the key's id, which is not secret.
func (s SigningKey) String() string {
	if s.private == nil {
		return ""
	}
	return "kid " + keyID(s.public())
}

// GoString masks the key for %#v.
func (s SigningKey) GoString() string { return s.String() }

// Reveal is the key in base64, as UnmarshalText reads it.
func (s SigningKey) Reveal() string {
	der, err := x509.MarshalPKCS8PrivateKey(s.private)
	if err != nil {
		panic(err) // an Ed25519 key can always be encoded
	}
	return base64.StdEncoding.EncodeToString(der)
}

// Trusted is the entry of TrustedKeys that trusts this key as the named process's.
func (s SigningKey) Trusted(process string) string {
	der, err := x509.MarshalPKIXPublicKey(s.public())
	if err != nil {
		panic(err) // as above
	}
	return process + "=" + base64.StdEncoding.EncodeToString(der)
}

func (s SigningKey) public() ed25519.PublicKey { return s.private.Public().(ed25519.PublicKey) }

// keyID names a public key: the first half of its SHA-256, in 32 hexadecimal digits.
func keyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:16])
}

// TrustedKeys are the public keys of processes, by key id. Which name a key is listed under
// decides what it may say.
type TrustedKeys struct{ byID map[string]trustedKey }

type trustedKey struct {
	process string
	public  ed25519.PublicKey
}

// maxLive is how many keys a process may have at once: the one that it signs with, and the
// one before or after.
const maxLive = 2

var processName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// UnmarshalText reads entries with white space between them, each a process's name, "=", and
// its public key as SubjectPublicKeyInfo in base64: what stands between the first and the last
// line of the PEM that `openssl pkey -pubout` writes. A name may be there twice.
func (t *TrustedKeys) UnmarshalText(text []byte) error {
	t.byID = map[string]trustedKey{}
	live := map[string]int{}
	for i, entry := range strings.Fields(string(text)) {
		// Whoever mistakes the private key for the public one must not find it in a log.
		name, encoded, found := strings.Cut(entry, "=")
		if !found || !processName.MatchString(name) {
			return fmt.Errorf("entry %d is not name=key", i+1)
		}
		public, err := parsePublic(encoded)
		if err != nil {
			return fmt.Errorf("entry %d (%s) is not an Ed25519 public key in base64; `openssl pkey -in FILE -pubout` writes it", i+1, name)
		}
		id := keyID(public)
		if other, taken := t.byID[id]; taken {
			return fmt.Errorf("entry %d (%s) is the same key as one of %s", i+1, name, other.process)
		}
		if live[name]++; live[name] > maxLive {
			return fmt.Errorf("%s has more than %d keys", name, maxLive)
		}
		t.byID[id] = trustedKey{name, public}
	}
	return nil
}

func parsePublic(encoded string) (ed25519.PublicKey, error) {
	der, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, err
	}
	public, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a key of the type %T", parsed)
	}
	return public, nil
}

// String lists names and key ids.
func (t TrustedKeys) String() string {
	var list []string
	for id, k := range t.byID {
		list = append(list, k.process+" "+id)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// MarshalText is String, for a configuration that is logged.
func (t TrustedKeys) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue is String for slog.
func (t TrustedKeys) LogValue() slog.Value { return slog.StringValue(t.String()) }
