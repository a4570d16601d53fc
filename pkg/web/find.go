package web

import (
	"context"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/web/i18n"
)

// FindPath is where the gateway asks a service for what a person looks for in the field of the console's header.
const FindPath = "/internal/console/find"

// FindRequest is what was typed: one line of 1 to 200 characters, without blanks around it.
type FindRequest struct {
	Text string `json:"text"`
	// Language is the code of that in which what was found is named; empty is English.
	Language string `json:"language,omitempty"`
}

// FindResponse has what was found, the likeliest first.
type FindResponse struct {
	Hits []Hit `json:"hits"`
	// More names the kinds of which there is more than Hits has.
	More []string `json:"more,omitempty"`
}

// Hit is one thing that was found: a line that leads to its page.
type Hit struct {
	// Kind is what it is, in the plural, such as Orders: hits of one kind stand together.
	Kind  string `json:"kind"`
	Title string `json:"title"`
	// Note tells it from others with the same title.
	Note string `json:"note,omitempty"`
	// At is when it has come into the state that Note tells; null where that says nothing.
	At *time.Time `json:"at,omitempty"`
	// Href is its page, a path of the console.
	Href string `json:"href"`
}

// Add adds the hits of a kind; where there are more of them than most, the rest is left out and More says so.
func (f *FindResponse) Add(most int, hits ...Hit) {
	if len(hits) > most {
		f.More, hits = append(f.More, hits[0].Kind), hits[:most]
	}
	f.Hits = append(f.Hits, hits...)
}

// FindOperation is the operation at FindPath. find returns what the user may see of what there is; of anybody else's
// questions nothing is found. It names it in the language of who looks, of which site has the words; nobody asks for the site before
// somebody looks for something.
func FindOperation(site func() *Site, find func(ctx context.Context, u User, text string) (FindResponse, error)) rpc.Operation {
	return rpc.New(rpc.Declaration{Path: FindPath, Takes: caller.Rule{caller.Gateway: {caller.User}}},
		func(ctx context.Context, in FindRequest) (FindResponse, error) {
			u, signedIn := UserOf(ctx)
			if !signedIn || in.Text == "" {
				return FindResponse{Hits: []Hit{}}, nil
			}
			l := i18n.Match(in.Language, "")
			found, err := find(i18n.With(ctx, site().editions[l.Code()].catalogue), u, in.Text)
			if found.Hits == nil {
				found.Hits = []Hit{}
			}
			return found, err
		})
}
