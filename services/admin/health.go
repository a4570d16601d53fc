package admin

import "time"

// Backlog is what waits at review-control, for people and for the mail server.
type Backlog struct {
	// Drafts are in review, with Mails that nobody has decided on; Oldest is when the first of them was queued.
	Drafts int        `json:"drafts"`
	Mails  int        `json:"mails"`
	Oldest *time.Time `json:"oldest"`
	// ToSend are approved, those of Sending among them; Failed and Unknown are of drafts that changed lately.
	ToSend  int `json:"to_send"`
	Sending int `json:"sending"`
	Failed  int `json:"failed"`
	Unknown int `json:"unknown"`
}

// SourceHealth is how the source database is to the replica of query that answered.
type SourceHealth struct {
	Reachable bool    `json:"reachable"`
	TookMS    float64 `json:"took_ms"`
	// Running statements of execute_read_sql have one of the Slots, Waiting ones none yet; Runaway ones outlive their end.
	Running int `json:"running"`
	Slots   int `json:"slots"`
	Waiting int `json:"waiting"`
	Runaway int `json:"runaway"`
}
