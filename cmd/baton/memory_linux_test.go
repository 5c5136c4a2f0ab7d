package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestContainerMemory(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		limit int64
		from  string
	}{
		"no cgroups": {},
		"v2, a container with its own name space": {map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "536870912\n",
		}, 536870912, "/sys/fs/cgroup/memory.max"},
		"v2, no limit": {map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 0, ""},
		"v2, a service: the least on the way up": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/baton.service\n",
			"sys/fs/cgroup/system.slice/baton.service/memory.max": "2000000000\n",
			"sys/fs/cgroup/system.slice/memory.max":               "1000000000\n",
		}, 1000000000, "/sys/fs/cgroup/system.slice/memory.max"},
		"v2, the path of the host": {map[string]string{
			"proc/self/cgroup":         "0::/../../kubepods/pod1/c1\n",
			"sys/fs/cgroup/memory.max": "1048576000\n",
		}, 1048576000, "/sys/fs/cgroup/memory.max"},
		"v1, the path of the host": {map[string]string{
			"proc/self/cgroup":                           "12:pids:/docker/x\n5:memory:/docker/x\n0::/docker/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
		}, 268435456, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		"v1, several controllers, no limit": {map[string]string{
			"proc/self/cgroup":                           "5:cpu,memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, ""},
		"nonsense": {map[string]string{
			"proc/self/cgroup":         "0::/\nx\n:::\n",
			"sys/fs/cgroup/memory.max": "-5\n",
		}, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range test.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if limit, from := containerMemory(root); limit != test.limit || from != test.from {
				t.Errorf("%d from %q, want %d from %q", limit, from, test.limit, test.from)
			}
		})
	}
}
