// Package auth is review-control's client of the auth service: what API keys are called. It remembers names for a
// minute, and does not ask a service again at once that did not answer: a page shows ids instead.
package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"hub.internal/pkg/remote"
	reviewcontrol "hub.internal/services/review-control"
)

const (
	// keptFor is how long a name is remembered.
	keptFor = time.Minute
	// pause is how long a service that did not answer is left alone.
	pause = 5 * time.Second
	// atMost bounds what a page waits for names.
	atMost = 500 * time.Millisecond
	// perCall is how many ids auth takes at once.
	perCall = 100
	// room is how many names are remembered.
	room = 4096
)

// Keys knows names of API keys.
type Keys struct {
	client *remote.Client
	now    func() time.Time

	mu    sync.Mutex
	known map[string]known
	// until is when auth may be asked again.
	until time.Time
}

// known is a name that auth has said, until when it is good; an empty name is a key that auth does not know.
type known struct {
	name  string
	until time.Time
}

var _ reviewcontrol.Keys = (*Keys)(nil)

// New returns the names behind a client of auth; now is the clock.
func New(client *remote.Client, now func() time.Time) *Keys {
	return &Keys{client: client, now: now, known: map[string]known{}}
}

// namesRequest asks for the names of at most 100 keys.
type namesRequest struct {
	IDs []string `json:"ids"`
}

// namesResponse has the names by id; keys without one are absent.
type namesResponse struct {
	Names map[string]string `json:"names"`
}

// names asks auth. It may be repeated, since it changes nothing.
var names = remote.Operation[namesRequest, namesResponse]{Path: "/internal/apikeys/names", Repeatable: true}

// Contracts are what this client takes for granted of auth.
func Contracts() []remote.Contract { return []remote.Contract{names.Contract()} }

// errPause is the error while auth is left alone: a page that lists drafts must not wait for it again and again.
var errPause = errors.New("auth has not answered a moment ago")

// Names implements reviewcontrol.Keys. What is known is answered beside an error, too.
func (k *Keys) Names(ctx context.Context, ids []string) (map[string]string, error) {
	found, missing, asks := k.recall(ids)
	if len(missing) == 0 {
		return found, nil
	}
	if !asks {
		return found, errPause
	}
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for some := range slices.Chunk(missing, perCall) {
		answer, err := names.Call(ctx, k.client, namesRequest{some})
		k.keep(some, answer.Names, err)
		if err != nil {
			return found, err
		}
		for _, id := range some {
			if name := answer.Names[id]; name != "" {
				found[id] = name
			}
		}
	}
	return found, nil
}

// recall returns what is known of the ids, the others, and whether auth may be asked about those.
func (k *Keys) recall(ids []string) (found map[string]string, missing []string, asks bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	found = map[string]string{}
	for _, id := range ids {
		if x, ok := k.known[id]; !ok || !now.Before(x.until) {
			missing = append(missing, id)
		} else if x.name != "" {
			found[id] = x.name
		}
	}
	slices.Sort(missing)
	return found, slices.Compact(missing), !now.Before(k.until)
}

// keep remembers what auth has answered, also that it knows nothing of an id.
func (k *Keys) keep(ids []string, answer map[string]string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if err != nil {
		k.until = now.Add(pause)
		return
	}
	if len(k.known)+len(ids) > room {
		clear(k.known)
	}
	for _, id := range ids {
		k.known[id] = known{answer[id], now.Add(keptFor)}
	}
}
