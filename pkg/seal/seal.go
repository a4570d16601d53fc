// Package seal encrypts what the store keeps and has to be read again, with a Tink keyset that is not in the store. What
// is sealed under one name opens under no other: a row cannot stand in for another. It refuses to know what it seals.
package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Box seals and opens with a keyset: it seals with the primary key, and opens what any of the keys has sealed.
type Box struct{ primitive tink.AEAD }

// Open reads a keyset as NewKeyset writes it. Its error repeats nothing of the text; who calls names the setting.
func Open(text string) (*Box, error) {
	h, err := read(text)
	if err != nil {
		return nil, err
	}
	primitive, err := aead.New(h)
	if err != nil {
		return nil, errors.New("it is a keyset for something else than to seal with")
	}
	return &Box{primitive}, nil
}

// Seal encrypts a text under a name.
func (b *Box) Seal(text, name string) ([]byte, error) {
	return b.primitive.Encrypt([]byte(text), []byte(name))
}

// Open decrypts what was sealed under the name.
func (b *Box) Open(sealed []byte, name string) (string, error) {
	text, err := b.primitive.Decrypt(sealed, []byte(name))
	if err != nil {
		return "", fmt.Errorf("%q does not open: it was sealed under another name, or with another keyset", name)
	}
	return string(text), nil
}

// NewKeyset draws a keyset with one AES-256-GCM key: the base64 of its binary form, on one line.
func NewKeyset() (string, error) {
	h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return "", err
	}
	return write(h)
}

// Added returns the keyset with another key, which opens and does not seal yet: first everybody has to have it. It refuses a keyset
// whose last key does not seal yet.
func Added(text string) (string, error) {
	return changed(text, func(m *keyset.Manager, last *keyset.Entry) error {
		if !last.IsPrimary() {
			return errors.New("it has a key already that was added and does not seal yet; promote that one")
		}
		_, err := m.Add(aead.AES256GCMKeyTemplate())
		return err
	})
}

// Promoted returns the keyset with the key that was added last as the one that seals from now on. The others still open. It refuses
// a keyset whose last key seals already.
func Promoted(text string) (string, error) {
	return changed(text, func(m *keyset.Manager, last *keyset.Entry) error {
		if last.IsPrimary() {
			return errors.New("its last key seals already; add another one first")
		}
		return m.SetPrimary(last.KeyID())
	})
}

// changed applies a change to a keyset, whose last key is the one that was added last.
func changed(text string, change func(m *keyset.Manager, last *keyset.Entry) error) (string, error) {
	h, err := read(text)
	if err != nil {
		return "", err
	}
	last, err := h.Entry(h.Len() - 1)
	if err != nil {
		return "", errNone
	}
	m := keyset.NewManagerFromHandle(h)
	if err := change(m, last); err != nil {
		return "", err
	}
	if h, err = m.Handle(); err != nil {
		return "", err
	}
	return write(h)
}

var errNone = errors.New("it is no keyset")

func read(text string) (*keyset.Handle, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		var h *keyset.Handle
		if h, err = insecurecleartextkeyset.Read(keyset.NewBinaryReader(bytes.NewReader(b))); err == nil {
			return h, nil
		}
	}
	// What was read may be a secret in the wrong place.
	return nil, errNone
}

func write(h *keyset.Handle) (string, error) {
	var b bytes.Buffer
	if err := insecurecleartextkeyset.Write(h, keyset.NewBinaryWriter(&b)); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
