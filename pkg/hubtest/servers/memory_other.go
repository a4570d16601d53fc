//go:build !linux

package servers

// Memory is a directory in memory for data that nobody needs later; empty where there is none.
func Memory() string { return "" }
