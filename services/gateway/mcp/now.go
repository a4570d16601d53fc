package mcp

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
)

const (
	// newestEvery is how often it is asked how new the source's rows are, and newestRetry how soon again while nobody has answered.
	newestEvery, newestRetry = time.Minute, 5 * time.Second
	// timeZone is that of every time that Hub answers, and of dates that say none.
	timeZone = "UTC"
)

// newestRows is query's answer: the time of the newest row up to now, without a zone, by table.
type newestRows struct {
	Newest map[string]string `json:"newest"`
}

var askNewest = remote.Operation[struct{}, newestRows]{Path: "/internal/source/newest", Most: 64 << 10, Repeatable: true}

// Contracts are what this room takes for granted of query.
func Contracts() []remote.Contract { return []remote.Contract{askNewest.Contract()} }

// AskQuery returns the question how new the source's rows are.
func AskQuery(query *remote.Client) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		a, err := askNewest.Call(caller.Alone(ctx, caller.Gateway), query, struct{}{})
		return a.Newest, err
	}
}

// Follow asks how new the source's rows are from time to time, until ctx ends. What was known before stays while nobody answers.
func (s *Server) Follow(ctx context.Context) error {
	for {
		asked, cancel := context.WithTimeout(ctx, newestRetry)
		newest, err := s.askNewest(asked)
		cancel()
		wait := newestEvery
		if err == nil {
			s.newest.Store(&newest)
		} else if s.newest.Load() == nil {
			wait = newestRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// tellsNow adds to the _meta of an answer when it is, and how new the source's rows are, where that is known.
func (s *Server) tellsNow(meta mcp.Meta) {
	meta[nowMeta], meta[zoneMeta] = schema.Moment(s.now()), timeZone
	if newest := s.newest.Load(); newest != nil && len(*newest) > 0 {
		meta[newestMeta] = *newest
	}
}

// instructions are Instructions with what a model cannot know: the day, the time zone, and how new the source's rows are.
func (s *Server) instructions() string {
	text := Instructions + s.now().UTC().Format(" Today is Monday, 2006-01-02; times are ") + timeZone + "."
	newest := s.newest.Load()
	if newest == nil || len(*newest) == 0 {
		return text
	}
	var rows []string
	for _, table := range slices.Sorted(maps.Keys(*newest)) {
		rows = append(rows, table+" "+(*newest)[table])
	}
	return text + " The source's newest rows: " + strings.Join(rows, ", ") + "; nothing later is known, whatever happened."
}

// withInstructions has a server's description of itself say the day too.
func (s *Server) withInstructions(r mcp.Result, err error) (mcp.Result, error) {
	switch r := r.(type) {
	case *mcp.InitializeResult:
		r.Instructions = s.instructions()
	case *mcp.DiscoverResult:
		r.Instructions = s.instructions()
	}
	return r, err
}
