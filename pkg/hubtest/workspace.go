package hubtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"hub.internal/pkg/localserver"
)

// workspace is the test binary's directory for servers' data.
var workspace tempSpace

// tempSpace is a temporary directory that is removed at the end, or, when the binary was
// killed, by the next one: a locked file in it says that its owner lives.
type tempSpace struct {
	// root is "" until the first directory is asked for; lock is held as long as the binary lives; n counts
	// directories.
	mu   sync.Mutex
	root string
	lock *os.File
	n    int
}

const (
	spacePrefix = "hub-test-"
	lockName    = "lock"
)

// dir makes the path of a new directory in the space; its user makes the directory.
func (w *tempSpace) dir(name string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.root == "" {
		if err := w.make(); err != nil {
			return "", err
		}
	}
	w.n++
	return filepath.Join(w.root, fmt.Sprintf("%s%d", name, w.n)), nil
}

// spaceParent is where spaces are: in TMPDIR when that is set, else in memory where there is enough.
func spaceParent() string {
	if os.Getenv("TMPDIR") != "" {
		return os.TempDir()
	}
	return cmp.Or(localserver.MemoryDir(), os.TempDir())
}

// make makes the directory and locks it, after those of killed test binaries were removed.
func (w *tempSpace) make() error {
	sweep()
	// Not t.TempDir: its parents are closed to the users that servers run as under root,
	// and its long names overflow the 107 bytes of a unix socket's path.
	root, err := os.MkdirTemp(spaceParent(), spacePrefix)
	if err != nil {
		return err
	}
	if err := os.Chmod(root, 0o755); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(root, lockName))
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(err, lock.Close())
	}
	w.root, w.lock = root, lock
	return nil
}

// remove deletes the directory with all that is in it.
func (w *tempSpace) remove() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.root == "" {
		return nil
	}
	err := errors.Join(os.RemoveAll(w.root), w.lock.Close())
	w.root = ""
	return err
}

// sweep removes the spaces of test binaries that were killed. It is best effort: what
// cannot be removed (another user's, say) is none of this run's business.
func sweep() {
	var locks []string
	for _, parent := range []string{os.TempDir(), spaceParent()} {
		found, _ := filepath.Glob(filepath.Join(parent, spacePrefix+"*", lockName)) // the pattern is valid
		locks = append(locks, found...)
	}
	for _, path := range locks {
		// A young one may be between its making and its locking.
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = f.Close()
	}
}
