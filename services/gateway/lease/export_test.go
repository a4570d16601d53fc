package lease

import "context"

// Sweep gives back what has lapsed.
func (l *Leases) Sweep(ctx context.Context) { l.sweep(ctx, false) }
