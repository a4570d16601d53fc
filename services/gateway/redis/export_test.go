package redis

import "time"

// OpenPatient is Open for a client that waits for its answers: on a busy machine, the budget
// of a call is soon spent.
func OpenPatient(url string) (*Redis, error) { return open(url, time.Minute) }
