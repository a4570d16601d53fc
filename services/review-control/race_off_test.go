//go:build !race

package reviewcontrol_test

const raceEnabled = false
