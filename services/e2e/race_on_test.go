//go:build race

package e2e_test

// raceEnabled tells build to give the programs the race detector too.
const raceEnabled = true
