package authoring

import (
	"strconv"
	"time"
)

// ID is the identity of a segment or a draft: a positive bigint, and a string in JSON,
// because JavaScript's numbers end at 2^53.
type ID int64

// ParseID reads an id in the one form that Hub writes it.
func ParseID(text string) (ID, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return ID(n), err == nil && n > 0 && ID(n).String() == text
}

// String is the id as text.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// stamp is a moment as answers tell it: RFC 3339, UTC, milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// stamped is stamp of a moment that may not have come.
func stamped(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(stamp(*t))
}

// Origin is who made something, as the internal token says it: unlike createdBy, which is
// a label of the caller's choice.
type Origin struct {
	Service        string `json:"service"`
	ExternalUserID string `json:"external_user_id"`
	CredentialID   string `json:"credential_id"`
	HubUser        string `json:"hub_user"`
}
