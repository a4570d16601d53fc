package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/pkg/fault"
	"hub.internal/services/client"
	"hub.internal/services/client/login"
	"hub.internal/services/client/output"
)

// release is the version of the client. The linker sets it when a release is built (-X main.release=v1.2.3).
var release = "dev"

// defaultTimeout is more than the gateway gives any tool unless its operator does: 35 s.
const defaultTimeout = 60 * time.Second

// hub is the program on its terminal, with the flags of all commands.
// Commands are its methods, or embed it, so that none keeps state in package variables.
type hub struct {
	terminal
	// The flags that every command has: --url, --allow-http and --timeout. A timeout of 0 waits without end.
	url       string
	allowHTTP bool
	timeout   time.Duration
	// started tells that the command line was understood.
	started bool
}

const long = `hub lists, explains and calls the tools of a Hub gateway.

  hub login                            the address and the key, once
  hub tools                            what this key may call
  hub show search_brands               what a tool takes and answers
  hub call search_brands categoryId=12 limit=5

HUB_URL names the gateway and HUB_API_KEY holds the key, where they are set:
they come before what hub login keeps.`

// command is the command line.
// It is built anew for each run, so that a test runs as many command lines as it likes, in parallel.
func command(h *hub) *cobra.Command {
	root := &cobra.Command{
		Use: "hub", Short: "The client of a Hub gateway", Long: long, Version: version(), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) { h.started = true },
		// Without these two, cobra answers an unknown command with the help and no error.
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// Without the word "version", which cobra puts between.
	root.SetVersionTemplate("hub {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&h.url, "url", "", "the gateway (default: HUB_URL, then that of hub login)")
	flags.BoolVar(&h.allowHTTP, "allow-http", false, "send the key to another machine without encryption (HUB_ALLOW_HTTP=true)")
	flags.DurationVar(&h.timeout, "timeout", defaultTimeout, "how long to wait for an answer; 0 waits without end")
	root.AddCommand(h.toolsCommand(), h.showCommand(), h.callCommand(), h.loginCommand(), h.logoutCommand(), h.whoamiCommand(),
		h.apiCommand(), payCommand(h), mcpCommand(h), exitCodes(), environment())
	// Help and completion of cobra's own go where everything else does, also in a test.
	root.SetIn(h.in)
	root.SetOut(h.out)
	root.SetErr(h.err)
	return root
}

// version is the release, with the commit where the build has noted it.
func version() string {
	// What was built with -buildvcs=false, as a release is, has no commit: its tag is enough.
	text := release
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += ", commit " + s.Value[:min(12, len(s.Value))]
			}
			if s.Key == "vcs.modified" && s.Value == "true" {
				text += " with changes"
			}
		}
	}
	return fmt.Sprintf("%s (%s, %s/%s)", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// sources are where the address and the key come from: flags, the environment, and the file of hub login.
// The order is that of login.Sources: the flag first, then the environment, then what was stored.
func (h *hub) sources() login.Sources {
	plain, _ := strconv.ParseBool(h.getenv("HUB_ALLOW_HTTP")) // what is no boolean allows nothing
	return login.Sources{URL: h.url, Env: h.getenv, Dir: h.directory("HUB_CONFIG_DIR", os.UserConfigDir), AllowHTTP: h.allowHTTP || plain}
}

// gateway returns a client without a key, for credentials of another kind.
// An address that cannot be used is E_VALIDATION; nothing is sent.
func (h *hub) gateway() (*client.Client, error) {
	address, err := h.sources().Address()
	if err != nil {
		return nil, misused("%v", err)
	}
	return &client.Client{URL: address.Value, Source: address.From, Agent: "hub/" + release, HTTP: client.NewHTTP()}, nil
}

// connect returns a client with the key, and where the key was found.
// A key that is not there or cannot be one is E_AUTH_MISSING; nothing is sent.
func (h *hub) connect() (*client.Client, string, error) {
	c, err := h.gateway()
	if err != nil {
		return nil, "", err
	}
	key, err := h.sources().Key(c.URL)
	if err != nil {
		return nil, "", fault.New(fault.AuthMissing, "%v", err)
	}
	c.Key = key.Value
	return c, key.From, nil
}

// cache keeps catalogs in the user's cache directory; it is nil, which keeps nothing, where there is none.
func (h *hub) cache() *client.Cache {
	dir := h.directory("HUB_CACHE_DIR", os.UserCacheDir)
	if dir == "" {
		return nil
	}
	return &client.Cache{Dir: dir, Now: h.now}
}

// waiting does something for which a person has to wait: within the time of --timeout, and with a word from two seconds on.
// When the time of --timeout is over, the error is a client.Unreachable: exit code 7.
func (h *hub) waiting(ctx context.Context, what string, do func(context.Context) error) error {
	if h.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, h.timeout)
		defer cancel()
		ctx = limited
	}
	// Only a person waits: in a script's log the word would be noise.
	if h.notes.Width > 0 {
		defer output.Progress(h.err, h.notes, func() string { return what })()
	}
	return do(ctx)
}

// note says something beside the answer, in lines that fit.
func (h *hub) note(format string, args ...any) {
	for _, line := range output.Wrap(output.Sanitize(fmt.Sprintf(format, args...)), h.notes.Width) {
		fmt.Fprintln(h.err, line)
	}
}

// misused is an error in the command line: E_VALIDATION.
// The exit code is that of the gateway's own E_VALIDATION, so that a script need not know who has refused.
func misused(format string, args ...any) error { return fault.New(fault.Validation, format, args...) }

// exchangeError is the error of an exchange, with what a hint has to know of it.
// It tells report which hint fits; the error within decides on the exit code.
// It wraps what package client answers; cobra hands it up unchanged.
type exchangeError struct {
	error
	// tool is the name of the tool that was called, for hints that name a command; "" where it was no call.
	tool string
	// keyFrom is where the key was found; "" when it was typed.
	keyFrom string
	// idempotencyKey is that of a write, which may have happened.
	idempotencyKey string
}

// Unwrap returns the error itself, so that its kind decides on the exit code.
func (a *exchangeError) Unwrap() error { return a.error }
