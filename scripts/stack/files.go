package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hub.internal/pkg/text"
)

// writeFile replaces a file in one step: a reader sees the old content or the new.
func writeFile(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeJSON writes a value in the way of writeFile, in a form that people can read.
// Indented: people read these files when something is wrong.
func writeJSON(path string, v any, mode os.FileMode) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(b, '\n'), mode)
}

// readJSON reads a file that we wrote; a missing one leaves v as it is.
func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is damaged (%w): remove it, or all with `make reset`", path, err)
	}
	return nil
}

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked")

// lockFile takes a lock that the kernel drops when the process ends, however it ends, and
// writes the process id into the file.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := fmt.Fprintln(f, os.Getpid()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockHolder is the process that holds the lock, or 0.
func lockHolder(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// A shared lock, so that two askers do not take one another for the holder.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return 0, nil
	} else if !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, err
	}
	var pid int
	if _, err := fmt.Fscan(f, &pid); err != nil {
		return 0, nil // just taken, the number is not there yet: the caller asks again
	}
	return pid, nil
}

// logLimit is the size from which a log is put aside at the next start.
const logLimit = 20 << 20

// openLog opens a log for appending; a large one becomes name.log.1 first.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// newLog opens a log that begins anew, in a checkout that may have no .hub yet.
func newLog(l layout, name string) (*os.File, error) {
	if err := l.make(); err != nil {
		return nil, err
	}
	return os.OpenFile(l.log(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

// lastLines is the end of a log, indented, for an error message.
func lastLines(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 8 << 10
	if info, err := f.Stat(); err == nil && info.Size() > enough {
		if _, err := f.Seek(-enough, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	for i, line := range lines {
		// A line that is no JSON is a program's last word, and says what to mend: it is shown whole.
		if strings.HasPrefix(line, "{") {
			lines[i] = text.Shorten(line, 240)
		}
	}
	return "\n    " + strings.Join(lines, "\n    ")
}

// withLog is an error that names a log and shows its last lines.
// The error can still be unwrapped.
func withLog(err error, path string) error {
	return fmt.Errorf("%w; the end of %s:%s", err, path, lastLines(path, 6))
}
