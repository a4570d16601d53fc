package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keepUnused is how long the catalog of a key is kept that nobody asks for.
const keepUnused = 30 * 24 * time.Hour

// Cache keeps catalogs in files of the user's, one for each address and key, so that a completion does not wait for the
// network. It is a convenience: what it cannot read or write is as if it were not there. A nil one keeps nothing.
type Cache struct {
	// Dir is made with mode 0700 when the first catalog is kept; Now is the clock.
	Dir string
	Now func() time.Time
}

// cacheFile is the file's form.
// A file that an earlier or later release wrote in another form cannot be read, and so is as if it were not there.
type cacheFile struct {
	ETag string          `json:"etag"`
	At   time.Time       `json:"at"`
	Body json.RawMessage `json:"body"`
}

// path names no key: of a digest nobody gets back to it.
// The key is part of it because the catalog says what this key may call.
func (k *Cache) path(c *Client) string {
	sum := sha256.Sum256([]byte(c.URL + "\n" + c.Key))
	return filepath.Join(k.Dir, "catalog-"+hex.EncodeToString(sum[:16])+".json")
}

// get returns the catalog that is kept for the client's address and key, when it was kept, and its ETag; nil when there is none that
// can be read.
func (k *Cache) get(c *Client) (*Catalog, time.Time, string) {
	if k == nil {
		return nil, time.Time{}, ""
	}
	var of cacheFile
	b, err := os.ReadFile(k.path(c))
	if err != nil || json.Unmarshal(b, &of) != nil {
		return nil, time.Time{}, ""
	}
	found, err := readCatalog(of.Body)
	if err != nil {
		return nil, time.Time{}, ""
	}
	return found, of.At, of.ETag
}

// age of a catalog that was kept at a time; one from the future is as old as can be.
func (k *Cache) age(at time.Time) time.Duration {
	if d := k.Now().Sub(at); d >= 0 {
		return d
	}
	return keepUnused
}

// put keeps the answer that a catalog came in. What goes wrong is not told: the next call asks the gateway again.
// The file has mode 0600 and is replaced at once: two programs may write it at the same time.
func (k *Cache) put(c *Client, body []byte, etag string) {
	if k == nil || os.MkdirAll(k.Dir, 0o700) != nil {
		return
	}
	b, err := json.Marshal(cacheFile{etag, k.Now(), body})
	if err != nil || Replace(k.path(c), b) != nil {
		return
	}
	k.sweep()
}

// sweep removes the catalogs of keys that are no longer in use.
func (k *Cache) sweep() {
	_ = filepath.WalkDir(k.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "catalog-") {
			return nil //nolint:nilerr // what cannot be looked at stays
		}
		if info, err := d.Info(); err == nil && k.Now().Sub(info.ModTime()) > keepUnused {
			_ = os.Remove(path)
		}
		return nil
	})
}

// Replace writes a file that its owner alone can read, at once or not at all.
func Replace(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
