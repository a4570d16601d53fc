//go:build race

package reviewcontrol_test

const raceEnabled = true
