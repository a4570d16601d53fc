//go:build race

package main

// raceEnabled tells that memory is not what it is without the detector.
const raceEnabled = true
