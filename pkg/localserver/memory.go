package localserver

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// MemoryDir is a directory in memory for data that nobody needs later, empty where there is none with room for the servers of
// a few test binaries at once. Databases are made and dropped there for a tenth of what a disk's file system takes.
func MemoryDir() string {
	// The second number is the magic number of tmpfs (statfs(2)), the third one is in bytes.
	const shm, tmpfs, room = "/dev/shm", 0x01021994, 6 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm, &fs); err != nil || fs.Type != tmpfs || int64(fs.Bavail)*fs.Bsize < room || free() < room {
		return ""
	}
	return shm
}

// free is how many bytes the machine can give away without swapping; 0 when it does not say.
func free() int64 {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(info)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
