package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// equalFor is how long the same input is taken for something that may have been done before.
const equalFor = 24 * time.Hour

// Equal warns where the key's principal has sent the same input to the same operation within a day, under another key, so that the
// call makes the same thing a second time. The warning has the rule what.equal, such as segment.equal, and names the id that the
// newest such answer has. It is nil when there is none; E_DB when the store cannot be reached. What runs at the same moment is not seen.
func (k *Keys) Equal(ctx context.Context, key Key, what string) (*tool.Warning, error) {
	var data []byte
	var at time.Time
	err := k.pool.QueryRow(ctx, `SELECT data, created_at FROM `+k.table+`
			WHERE fingerprint = $1 AND created_at > now() - make_interval(secs => $2) AND credential_id = $3 AND tool = $4
			AND state = 'done' AND (key <> $5 OR $6 > 0 AND created_at < now() - make_interval(secs => $6))
			ORDER BY created_at DESC LIMIT 1`, key.Fingerprint[:], equalFor.Seconds(), key.Principal, key.Operation, key.Key, key.holds()).
		Scan(&data, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, postgres.Explain(err, k.options.Service)
	}
	var answer struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(data, &answer) // an earlier release may have answered otherwise
	if answer.ID == "" {
		return nil, nil
	}
	return &tool.Warning{Rule: what + ".equal", Message: fmt.Sprintf("%s %s was made by the same call at %s: use that one where a second is "+
		"not meant", what, answer.ID, schema.Moment(at))}, nil
}
