package remote

// Overloaded tells whether an answer counts as one of a service with too much to do.
var Overloaded = overloaded
