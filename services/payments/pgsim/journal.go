package pgsim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// journal is a file with one change a line: an order as it is since then, a webhook as it is since then, or the URL
// that webhooks go to. A line is written whole, before the call that has caused it is answered: what a caller was told
// survives a kill of the simulator, as the vendor's word would.
// It is a write-ahead log without fsync: it outlives the process, and not a power cut. It is never compacted, since a
// simulator lives for a test or a day.
type journal struct{ file *os.File }

// entry is a line of the journal. Exactly one member is set.
// The last entry of an order or a webhook is its state.
type entry struct {
	Order *order  `json:"order,omitempty"`
	Hook  *hook   `json:"hook,omitempty"`
	URL   *string `json:"url,omitempty"`
}

// add writes a line. A nil journal keeps nothing.
func (j *journal) add(e entry) {
	if j == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("the journal cannot be written: %v", err)) // a truth that is not kept must not be told
	}
}

// hook writes a webhook as it is now.
func (j *journal) hook(h *hook) { j.add(entry{Hook: h}) }

// close closes the file; a nil journal has none.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

// kept writes an order down; the lock is held.
func (s *Sim) kept(o *order) { s.journal.add(entry{Order: o}) }

// restore begins with what the journal holds, and opens it for more. A last line that was not written whole is dropped.
// The file is readable by its owner alone, and two simulators at once on one file are a mistake that nothing prevents.
func (s *Sim) restore() error {
	if s.c.State == "" {
		return nil
	}
	file, err := os.OpenFile(s.c.State, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	whole, err := s.replay(file)
	if err == nil {
		err = file.Truncate(whole)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.c.State, err), file.Close())
	}
	s.journal = &journal{file}
	return nil
}

// replay applies the lines of a journal and tells where the last whole one ends.
// A line that is whole and no entry is an error: it is the file of something else. WebhookURL of the configuration comes
// before the one in the journal. Webhooks that were not acknowledged are due at once.
func (s *Sim) replay(file io.Reader) (whole int64, err error) {
	hooks := map[int]*hook{}
	var sequence []int
	in := bufio.NewReader(file)
	for {
		line, readErr := in.ReadBytes('\n')
		if !bytes.HasSuffix(line, []byte("\n")) {
			if errors.Is(readErr, io.EOF) {
				break
			}
			return whole, readErr
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return whole, fmt.Errorf("the line at byte %d is not one of this journal: %w", whole, err)
		}
		whole += int64(len(line))
		switch {
		case e.Order != nil:
			s.orders[e.Order.OrderID] = e.Order
		case e.Hook != nil:
			if hooks[e.Hook.ID] == nil {
				sequence = append(sequence, e.Hook.ID)
			}
			hooks[e.Hook.ID] = e.Hook
			s.numbers = max(s.numbers, e.Hook.ID)
		case e.URL != nil && s.c.WebhookURL == "":
			s.hookURL = *e.URL
		}
	}
	for _, id := range sequence {
		if hooks[id].Done {
			s.remember(hooks[id])
			continue
		}
		hooks[id].next = time.Now()
		s.hooks = append(s.hooks, hooks[id])
	}
	for _, o := range s.orders {
		s.index(o)
	}
	return whole, nil
}

// index makes the payments and cancels of an order found by their ids.
// The counter of numbers is set beyond all that may have been given out, so that no tid and no account comes twice.
func (s *Sim) index(o *order) {
	s.sessions[o.SessionID] = o
	for _, p := range o.Payments {
		s.payments[p.TID] = p
		s.numbers += 2 + len(p.Cancels)
		for _, c := range p.Cancels {
			if c.Code != "" {
				s.refunds[c.Code] = p
			}
		}
	}
}
