package main

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// noMemoryLimit is where limits of cgroup v1 begin that mean none: it writes the
// largest multiple of a page.
const noMemoryLimit = 1 << 60

// maxCgroupDepth bounds the way up from the process's group.
const maxCgroupDepth = 64

// containerMemory returns the memory limit of the process's control group in
// bytes, the least one on the way up, and the file that says it; 0 = none. root
// is where the file system begins.
// https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.max),
// https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
func containerMemory(root string) (limit int64, from string) {
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, ""
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path; v2 has hierarchy 0 and no controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, name := "", ""
		switch {
		case parts[0] == "0" && parts[1] == "":
			mount, name = "sys/fs/cgroup", "memory.max"
		case strings.Contains(","+parts[1]+",", ",memory,"):
			mount, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		if l, file := leastLimit(root, mount, parts[2], name); l > 0 && (limit == 0 || l < limit) {
			limit, from = l, file
		}
	}
	return limit, from
}

// leastLimit looks at a group and at all above it. A group that is not there is
// passed over: the path is often that of the host, of which a container sees only
// its own end, as the mount itself.
func leastLimit(root, mount, group, name string) (limit int64, from string) {
	for depth, dir := 0, path.Clean("/"+group); depth < maxCgroupDepth; depth, dir = depth+1, path.Dir(dir) {
		file := path.Join("/", mount, dir, name)
		if l := readLimit(filepath.Join(root, file)); l > 0 && (limit == 0 || l < limit) {
			limit, from = l, file
		}
		if dir == "/" {
			break
		}
	}
	return limit, from
}

// readLimit reads a file of one number; 0 = there is none, or it says no limit.
func readLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 || n >= noMemoryLimit {
		return 0 // "max", or nothing to go by
	}
	return n
}
