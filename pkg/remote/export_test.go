package remote

// Overloaded tells whether an answer counts as one of a service with too much to do.
var Overloaded = overloaded

// Unreachable is the error of an instance that has not answered.
func Unreachable(cause error, unsent bool) error { return &unreachable{cause: cause, unsent: unsent} }
