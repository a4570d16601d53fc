package servers

import "syscall"

const (
	killSignal   = syscall.SIGKILL
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)

// signalAll signals every process; one that has ended meanwhile needs no signal.
func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}
