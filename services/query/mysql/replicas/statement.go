package replicas

import (
	"context"

	"hub.internal/services/query"
)

// ReadStatement implements query.StatementReader. A statement whose server goes away runs once more, from its
// beginning, on another one: nothing of its answer leaves before it is whole.
// Columns may come to the writer a second time then, which is how it knows to begin anew. The turn goes with the statement:
// of the server that was left, nothing is told any more, although a piece of it may still run there until its time limit.
func (s *Set) ReadStatement(ctx context.Context, st query.Statement, to query.RowWriter) error {
	m := s.pick(nil)
	err, moves := m.read(ctx, st, to, true)
	if !moves {
		return err
	}
	m.suspect()
	if other := s.pick(m); other != nil {
		s.metrics.moved(ctx, m)
		err, _ = other.read(ctx, st, to, false)
		return err
	}
	if st.Turn != nil {
		st.Turn.End()
	}
	return err
}

// read runs the statement here. moves says that it is to be tried elsewhere, where its turn is still
// its own.
func (m *member) read(ctx context.Context, st query.Statement, to query.RowWriter, mayMove bool) (err error, moves bool) {
	attempt, leave := m.begin(ctx)
	defer leave()
	var t *turn
	if st.Turn != nil {
		t = &turn{of: m, held: st.Turn}
		st.Turn = t
	}
	err = m.reader.ReadStatement(attempt, st, to)
	moves = mayMove && m.moves(ctx, attempt, err)
	switch {
	case t == nil:
	case moves:
		t.leave()
	default:
		t.settle()
	}
	return err, moves
}
