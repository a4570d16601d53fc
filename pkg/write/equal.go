package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
)

// equalFor is how long the same input is taken for something that may have been done before.
const equalFor = 24 * time.Hour

// Equal warns where the key's principal has sent the same input to the same operation within a day, under another key, so that the
// call makes the same thing a second time. The warning has the rule what.equal, such as segment.equal, and names the id that the
// newest such answer has. It is nil when there is none; E_DB when the store cannot be reached. What runs at the same moment is not seen.
func (k *Keys) Equal(ctx context.Context, key Key, what string) (*tool.Warning, error) {
	var data []byte
	var seconds float64
	err := k.pool.QueryRow(ctx, `SELECT data, extract(epoch FROM now() - created_at)::float8 FROM `+k.table+`
			WHERE fingerprint = $1 AND created_at > now() - make_interval(secs => $2) AND credential_id = $3 AND tool = $4
			AND state = 'done' AND (key <> $5 OR $6 > 0 AND created_at < now() - make_interval(secs => $6))
			ORDER BY created_at DESC LIMIT 1`, key.Fingerprint[:], equalFor.Seconds(), key.Principal, key.Operation, key.Key, key.holds()).
		Scan(&data, &seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, postgres.Explain(err, k.options.Service)
	}
	var answer struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &answer) != nil || answer.ID == "" { // an earlier release has answered otherwise
		return nil, nil
	}
	return &tool.Warning{Rule: what + ".equal", Message: fmt.Sprintf("%s %s was made by the same call %s ago: use that one where a second is "+
		"not meant", what, answer.ID, ago(time.Duration(seconds*float64(time.Second))))}, nil
}

// ago is an age in its largest unit.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
}
