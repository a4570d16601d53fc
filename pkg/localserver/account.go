package localserver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system user a server runs as. The zero value means "as this
// process", which is the case unless the process is root.
type account struct {
	// other tells that it is another one than this process', which uid and gid then name.
	uid, gid uint32
	other    bool
}

// pickAccount chooses the first of the users that exists when this process is root:
// MariaDB and PostgreSQL refuse to run as root, and the others need not.
func pickAccount(users []string) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range append(users, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return account{}, err
		}
		return account{uid: uint32(uid), gid: uint32(gid), other: true}, nil
	}
	return account{}, fmt.Errorf("running as root needs one of the operating system users %v or nobody", users)
}

// apply makes cmd run as the account.
// A child of root gives up root before it runs.
func (a account) apply(cmd *exec.Cmd) {
	if a.other {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
}

// own makes dir and gives it, with all it holds, to the account.
// A directory that is the account's already is not walked: it may hold a whole database.
func (a account) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if !a.other {
		return nil
	}
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == a.uid && st.Gid == a.gid {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// reaches asks the kernel whether the account can work in dir: mode bits alone would miss
// ACLs and mounts.
func (a account) reaches(dir string) bool {
	return a.test("-w", dir)
}

// test is the shell's test of a file, as the account.
func (a account) test(what, path string) bool {
	cmd := exec.Command("/bin/sh", "-c", `test "$0" "$1"`, what, path)
	cmd.Dir = "/"
	a.apply(cmd)
	return cmd.Run() == nil
}

// home makes dir the account's own and returns the real path of the directory to use.
// It is the caller's path, or a link there to where the data had to go.
func home(dir string, who account) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	} else if _, err := os.Lstat(dir); err == nil {
		// A link whose target is gone: start afresh.
		if err := os.Remove(dir); err != nil {
			return "", err
		}
	}
	// The parents are the caller's and have to be searchable; only the last is private.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := who.own(dir); err != nil {
		return "", err
	}
	if who.reaches(dir) {
		return filepath.EvalSymlinks(dir)
	}
	return relocate(dir, who)
}

// relocate moves dir to a place that the account can reach and leaves a link.
func relocate(dir string, who account) (string, error) {
	// Only an empty directory can be replaced: data that the account once could reach must
	// not be dropped silently.
	if err := os.Remove(dir); err != nil {
		return "", fmt.Errorf("%s is not empty and the server's user cannot reach it: make its parents searchable (chmod o+x) or remove it", dir)
	}
	// Only root gets here, so the system's place for programs' state is open to us. What
	// is there without a link to it belongs to a checkout that was deleted.
	place := filepath.Join("/var/lib", "hub-"+pathHash(dir))
	if err := os.RemoveAll(place); err != nil {
		return "", err
	}
	if err := who.own(place); err != nil {
		return "", err
	}
	if !who.reaches(place) {
		return "", fmt.Errorf("the server's user can reach neither %s nor %s: make their parents searchable (chmod o+x)", dir, place)
	}
	return place, os.Symlink(place, dir)
}

// pathHash tells directories apart in names that have to be short.
func pathHash(path string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(path)))[:12]
}

// longestDir leaves room for the name of a socket in the 107 bytes that its path may have.
const longestDir = 80

// socketPath is where the sockets of a server in dir go.
func socketPath(dir string) string {
	if len(dir) <= longestDir {
		return filepath.Join(dir, "run")
	}
	return filepath.Join("/tmp", "hub-run-"+pathHash(dir))
}

// socketDir makes the directory of the sockets for the account alone. It refuses one that another user has made.
func socketDir(dir string, who account) (string, error) {
	path := socketPath(dir)
	if err := who.own(path); err != nil {
		return "", err
	}
	// In /tmp somebody else may have been there first.
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	owner := uint32(os.Geteuid())
	if who.other {
		owner = who.uid
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || (ok && st.Uid != owner) {
		return "", fmt.Errorf("%s belongs to another user: remove it", path)
	}
	return path, nil
}
