package service

// Draining tells whether the process has begun to stop.
func (h *Host) Draining() bool { return h.process.draining.Load() }

// CollectorAddr is where the doctor looks for a collector.
var CollectorAddr = collectorAddr
