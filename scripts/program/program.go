// Package program is what the programs below scripts/ have in common: how they begin and end, in which repository they
// work, and how two builds are told apart. It refuses to know what any of them does.
package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs a program's command line to its end. SIGINT and SIGTERM cancel the context of the command, which then has
// to end by itself, and further ones change nothing until it has. An error is printed on standard error behind the name of
// the program, and makes the exit code 1.
func Main(c *cobra.Command) {
	c.SilenceErrors, c.SilenceUsage, c.CompletionOptions.DisableDefaultCmd = true, true, true
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.ExecuteContext(ctx)
	restore()
	if err != nil {
		fmt.Fprintln(os.Stderr, c.Name()+":", err)
		os.Exit(1)
	}
}

// Root is the repository that the working directory is in: the folder with go.work, there or above.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work in %s or above: run this inside the repository", start)
		}
	}
}

// Digest is the SHA-256 of a file in hexadecimal digits. Two builds with the same one are the same program.
func Digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
