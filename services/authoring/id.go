package authoring

import (
	"time"

	"hub.internal/pkg/schema"
)

// ID is the identity of a segment or a draft.
type ID = schema.ID

// momentOrNil is a moment that may not have come, as answers tell it.
func momentOrNil(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(schema.Moment(*t))
}

// Origin is who made something, as the internal token says it: unlike createdBy, which is
// a label of the caller's choice.
type Origin struct {
	Service        string `json:"service"`
	ExternalUserID string `json:"external_user_id"`
	CredentialID   string `json:"credential_id"`
	HubUser        string `json:"hub_user"`
}
