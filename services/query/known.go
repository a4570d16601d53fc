package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

const (
	// knownAge is how long what was read of the source for the sake of messages is good for.
	knownAge = 10 * time.Minute
	// knownRetry is how soon it is read again: because that failed, or because it seems to be too old.
	knownRetry = time.Minute
	// knownLimit bounds the wait for it: the answer is complete without.
	knownLimit = 2 * time.Second
	// mostCodes is how many codes a message lists.
	mostCodes = 20
)

// known keeps what is read of the source beside answers, by name. One caller at a time reads an entry; who comes meanwhile
// waits. What could not be read is the zero value, until knownRetry has passed.
type known[V any] struct {
	now     func() time.Time
	mu      sync.Mutex
	entries map[string]*knownEntry[V]
}

type knownEntry[V any] struct {
	reading chan struct{} // holds one token while a caller reads
	value   V
	good    bool
	at      time.Time
}

func newKnown[V any](now func() time.Time) *known[V] {
	return &known[V]{now: now, entries: map[string]*knownEntry[V]{}}
}

// get returns what is known under a name, at most age old, or reads it.
func (k *known[V]) get(ctx context.Context, name string, age time.Duration, read func(context.Context) (V, error)) (value V, good bool) {
	k.mu.Lock()
	e := k.entries[name]
	if e == nil {
		e = &knownEntry[V]{reading: make(chan struct{}, 1)}
		k.entries[name] = e
	}
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, knownLimit)
	defer cancel()
	select {
	case e.reading <- struct{}{}:
	case <-ctx.Done():
		return value, false
	}
	defer func() { <-e.reading }()
	if e.at.IsZero() || k.now().Sub(e.at) >= age || !e.good && k.now().Sub(e.at) >= knownRetry {
		fresh, err := read(ctx)
		if e.at = k.now(); err == nil {
			e.value = fresh
		}
		e.good = err == nil
	}
	return e.value, e.good
}

// unknownCodes warns of codes that no row of a column of the source has. seen are those of the answer, which need no look.
func (s *Service) unknownCodes(ctx context.Context, rule, table, column string, codes, seen []string) []tool.Warning {
	is := func(code string) func(string) bool {
		return func(other string) bool { return strings.EqualFold(code, other) }
	}
	missing := slices.DeleteFunc(slices.Clone(codes), func(code string) bool { return slices.ContainsFunc(seen, is(code)) })
	if len(missing) == 0 {
		return nil
	}
	read := func(ctx context.Context) ([]string, error) { return s.Source.Codes(ctx, table, column) }
	exist, good := s.codes.get(ctx, table+"."+column, knownAge, read)
	hasAll := func() bool {
		return !slices.ContainsFunc(missing, func(code string) bool { return !slices.ContainsFunc(exist, is(code)) })
	}
	if good && !hasAll() { // which may have come since
		exist, good = s.codes.get(ctx, table+"."+column, knownRetry, read)
	}
	if !good || hasAll() {
		return nil
	}
	missing = slices.DeleteFunc(missing, func(code string) bool { return slices.ContainsFunc(exist, is(code)) })
	return []tool.Warning{{Rule: rule, Message: unknownCode(table, column, missing[0], exist)}}
}

func unknownCode(table, column, code string, exist []string) string {
	message := fmt.Sprintf("no %s of the source has the %s %.40q", table, column, code)
	if nearest := schema.Nearest(code, exist); nearest != "" && len(code) > 3 {
		message += ": did you mean " + nearest + "?"
	}
	if meaning := codeOf(code); meaning != "" {
		message += fmt.Sprintf("; %s is %s", code, meaning)
	}
	list := slices.Clone(exist)
	for i, c := range list {
		if meant := CampaignStatus(c); meant != nil && column == "status_code" {
			list[i] += " (" + *meant + ")"
		}
	}
	switch {
	case len(list) == 0:
		return message + "; there is none at all"
	case len(list) > mostCodes:
		return message + fmt.Sprintf("; there are %s and %d more", strings.Join(list[:mostCodes], ", "), len(list)-mostCodes)
	}
	return message + "; there are " + strings.Join(list, ", ")
}

// codeOf is the status code of a meaning, for who writes closed in place of 1209.
func codeOf(meaning string) string {
	for _, s := range statuses {
		if strings.EqualFold(strings.ReplaceAll(meaning, " ", "_"), s.meaning) {
			return s.code
		}
	}
	return ""
}
