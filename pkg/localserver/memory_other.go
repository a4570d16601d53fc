//go:build !linux

package localserver

// Memory is a directory in memory for data that nobody needs later; empty where there is none.
func Memory() string { return "" }
