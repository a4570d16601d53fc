package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/services/client"
)

// The exit codes: classes of errors, by what a script can do about them.
const (
	// Scripts rely on the numbers: one is never given another meaning. 130 and 143 are 128 and the signal's number, as
	// shells have it.
	exitOther       = 1
	exitUsage       = 2
	exitDenied      = 3
	exitNotFound    = 4
	exitConflict    = 5
	exitRateLimit   = 6
	exitUnavailable = 7
	exitInterrupted = 130
	exitTerminated  = 143
)

// exitCodeOfStatus is the exit code of a refusal with an HTTP status.
// The classes are those of what to do: write it otherwise, ask for a right, look again, or try again later.
func exitCodeOfStatus(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed:
		return exitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitDenied
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict, http.StatusUnprocessableEntity:
		return exitConflict
	case http.StatusTooManyRequests:
		return exitRateLimit
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitUnavailable
	}
	return exitOther
}

// exitCode is the exit code of any error. A refusal has that of its code, or of its HTTP status when a newer gateway has codes
// that this program does not know.
// It looks through an exchangeError at the error within.
func (h *hub) exitCode(err error) int {
	var failure *client.Failure
	var unreachable *client.Unreachable
	var refused *fault.Error
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &failure):
		// A code that this release does not know counts by the status that it came with. To wait does not help where the answer is final.
		code := exitCodeOfStatus((&fault.Error{Code: failure.Code}).Answered(failure.Status).Status())
		if code == exitUnavailable && failure.Final {
			return exitUsage
		}
		return code
	case errors.As(err, &unreachable):
		return exitUnavailable
	case errors.As(err, &refused):
		return exitCodeOfStatus(refused.Status())
	// cobra's own errors, such as an unknown flag, come before PersistentPreRun.
	case !h.started:
		return exitUsage
	}
	return exitOther
}

// report prints an error, its details and what to do about it, and returns the exit code.
// It is the one place that prints an error. Of an interruption nothing is said: whoever has pressed Ctrl-C knows.
func (h *hub) report(err error) int {
	code := h.exitCode(err)
	if err == nil || code == exitInterrupted {
		return code
	}
	// One line, whatever the error holds: the gateway's messages may quote what others wrote.
	said := err.Error()
	var refused *fault.Error
	if errors.As(err, &refused) {
		said = refused.Message // its code and its cause say nothing more
	}
	if said = text.OneLine(said); !h.started {
		said += "; hub --help says more"
	}
	h.note("hub: %s", said)
	var of *exchangeError
	if !errors.As(err, &of) {
		return code
	}
	var failure *client.Failure
	if errors.As(err, &failure) {
		h.details(failure)
	}
	if hint := of.hint(); hint != "" {
		h.note("hint: %s", hint)
	}
	return code
}

// details prints what a failure says beside its message.
// A single violation is the message already, so that a list begins with two.
func (h *hub) details(f *client.Failure) {
	var of struct {
		Violations []struct{ Path, Message string }
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(f.Details, &all) != nil {
		return
	}
	if json.Unmarshal(f.Details, &of) == nil && len(of.Violations) > 0 {
		delete(all, "violations")
		if len(of.Violations) > 1 { // one is the message
			for _, v := range of.Violations {
				h.note("  %s %s", v.Path, v.Message)
			}
		}
	}
	// The hint says it in words.
	delete(all, "retryAfter")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		h.note("  %s: %s", name, all[name])
	}
}

// hint says what to do about an error of an exchange; "" when the message says it.
// It is one line, in the words of this program's commands and flags.
func (a *exchangeError) hint() string {
	var failure *client.Failure
	var unreachable *client.Unreachable
	switch {
	// The order matters: a write without an answer is the one case where doing nothing may lose something and doing it
	// again may do it twice.
	case errors.As(a.error, &unreachable) && a.idempotencyKey != "":
		return "whether the write happened is not known; the same command with --idempotency-key " + a.idempotencyKey + " does it once"
	case errors.As(a.error, &unreachable) && unreachable.Timeout():
		return "--timeout waits longer"
	case !errors.As(a.error, &failure):
		return ""
	}
	if failure.Reason() == "REQUEST_IN_PROGRESS" {
		return "the first call with this key still runs: the same command again in a moment, with --idempotency-key " + a.idempotencyKey
	}
	return a.advice(failure)
}

// advice is what to do about a code.
// It covers the codes that a caller can do something about; the others have none.
func (a *exchangeError) advice(f *client.Failure) string {
	switch f.Code {
	case fault.Validation, fault.BadAmount:
		if a.tool != "" {
			return "hub show " + a.tool + " says what it takes"
		}
		return "hub --help says how to ask"
	case fault.AuthMissing, fault.AuthInvalid, fault.AuthExpired, fault.AuthRevoked:
		if a.keyFrom == "" {
			return "nothing was kept: look at the key again"
		}
		return "the key is that of " + a.keyFrom + ": hub login, or export another HUB_API_KEY"
	case fault.Scope:
		return "hub tools lists what this key may call; an administrator issues keys with other scopes"
	case fault.AccountLinkMissing:
		return "the user has to link an account first"
	case fault.NotFound:
		return "hub tools lists the tools, and the tools that list or search have the ids"
	case fault.Conflict:
		return "look at what there is now, and decide again"
	case fault.Idempotency:
		return "the Idempotency-Key was used for another input: leave --idempotency-key out, and a new one is made"
	case fault.Suppressed:
		return "make a draft without these recipients"
	case fault.RateLimit:
		return fmt.Sprintf("the same again in %d s%s", int(max(f.RetryAfter.Seconds(), 1)), a.withKey())
	case fault.DBTimeout:
		if f.Final {
			return "the same again takes as long: ask for less"
		}
		return "ask for less, or the same again later" + a.withKey()
	case fault.DB:
		return "the same again in a moment" + a.withKey()
	case fault.Internal:
		return "report it with the request id " + f.RequestID + a.withKey()
	}
	return ""
}

// withKey is how a write is tried again.
func (a *exchangeError) withKey() string {
	if a.idempotencyKey == "" {
		return ""
	}
	return ", with --idempotency-key " + a.idempotencyKey
}

// exitCodes is a page of help.
// It is made of fault.Codes, so that a new code is in it by itself.
func exitCodes() *cobra.Command {
	codes := map[int][]string{}
	for _, code := range slices.Sorted(maps.Keys(fault.Codes())) {
		class := exitCodeOfStatus(fault.Codes()[code])
		codes[class] = append(codes[class], string(code))
	}
	var b strings.Builder
	b.WriteString("The exit code of hub says what a script can do about an error:\n\n  0    it is done\n")
	for _, class := range []struct {
		code int
		text string
	}{
		{exitOther, "anything else: a defect, a file, an answer that is none"},
		{exitUsage, "the command or the input is wrong, or asks for too much: write it otherwise"},
		{exitDenied, "no key, or one that does not allow it"},
		{exitNotFound, "there is no such tool, draft, brand, …"},
		{exitConflict, "what Hub holds stands against it, or the Idempotency-Key does"},
		{exitRateLimit, "too many calls: the same again later"},
		{exitUnavailable, "no answer, or none in time: the same again may work"},
		{exitInterrupted, "Ctrl-C; 143 for SIGTERM"},
	} {
		fmt.Fprintf(&b, "  %-4d %s\n", class.code, class.text)
		if len(codes[class.code]) > 0 {
			fmt.Fprintf(&b, "       %s\n", strings.Join(codes[class.code], ", "))
		}
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit code says", Long: strings.TrimRight(b.String(), "\n")}
}

// environment is a page of help.
func environment() *cobra.Command {
	return &cobra.Command{Use: "environment", Short: "The variables that hub reads", Long: `hub reads of its environment:

  HUB_URL           the gateway, as https://hub.example.com; --url comes first
  HUB_API_KEY       the API key; HUB_API_KEY_FILE names a file that holds it
  HUB_ALLOW_HTTP    true sends keys to other machines over plain http
  HUB_CONFIG_DIR    where hub login keeps addresses and keys
  HUB_CACHE_DIR     where catalogs are kept, for completion
  NO_COLOR          any value: no bold and no dim text
  HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE as everywhere

hub pay --help lists those of hub pay; its listen and trigger read HUB_WEBHOOK_SECRET,
HUB_PGSIM_URL, HUB_PGSIM_SECRET and HUB_ECHO_URL too.`}
}
