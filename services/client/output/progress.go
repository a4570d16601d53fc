package output

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progressDelay is how long a person waits before they wonder.
const progressDelay = 2 * time.Second

// Progress tells on a terminal what is waited for, in one line that goes away again, from two seconds on. The caller ends it
// by stop, which returns when nothing more is written.
func Progress(w io.Writer, s Screen, what func() string) (stop func()) {
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		begun := time.Now()
		wait := time.NewTimer(progressDelay)
		defer wait.Stop()
		widest := 0
		for turn := 0; ; turn++ {
			select {
			// Spaces take the line away, and the cursor is at its beginning for what comes.
			case <-end:
				if widest > 0 {
					fmt.Fprint(w, "\r"+strings.Repeat(" ", widest)+"\r")
				}
				return
			case <-wait.C:
				line := fmt.Sprintf("%c %s %d s", []rune(`|/-\`)[turn%4], Sanitize(what()), int(time.Since(begun).Seconds()))
				// A line that wraps could not be taken back.
				line = Truncate(line, max(s.Width-1, 10))
				widest = max(widest, Width(line))
				fmt.Fprint(w, "\r"+line)
				wait.Reset(250 * time.Millisecond)
			}
		}
	})
	return sync.OnceFunc(func() { close(end); done.Wait() })
}
