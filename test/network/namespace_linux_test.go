package network

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/test/harness"
)

// patience bounds every wait. It is far more than anything takes, because the
// machine may be busy.
const patience = 30 * time.Second

const insideVar = "BATON_TEST_NAMESPACE"

// inside reports whether this process is in namespaces of its own. If not, it
// runs the test there in a child process, with the same verdict.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVar) != "" {
		run(t, "ip", "link", "set", "lo", "up")
		return true
	}
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	for _, tool := range []string{"ip", "nsenter", "unshare", "mount", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	namespaces := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	try := exec.Command("sh", "-c", "ip link add name one type veth peer name two && mount --bind /etc/hosts /etc/hosts")
	try.SysProcAttr = namespaces
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %v: %s", err, out)
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=4m")
	child.SysProcAttr = namespaces
	child.Env = append(os.Environ(), insideVar+"=1", harness.BinaryVar+"="+harness.Binary(t))
	out, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("the test did not pass in its namespaces:\n%s", out)
	}
	return false
}

func run(t testing.TB, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

// A host is a machine with one simulated worker on it.
type host struct {
	t       testing.TB
	number  int
	address string
	process *harness.Process
}

// port is the same on every host.
const port = 8000

func (h *host) id() string { return fmt.Sprintf("%s:%d", h.address, port) }

// startHost brings up a machine and its worker, which gets args.
func startHost(t testing.TB, number int, args ...string) *host {
	t.Helper()
	h := &host{t: t, number: number, address: fmt.Sprintf("10.77.%d.2", number)}
	// The worker's process is the one that has the namespace, so it begins as a
	// shell that waits for its network.
	script := fmt.Sprintf(`until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done
		ip link set lo up; ip addr add %[1]s/24 dev eth0; ip link set eth0 up; exec "$0" "$@"`, h.address)
	worker := append([]string{harness.Binary(t), "sim", "--host", h.address, "--port", fmt.Sprint(port)}, args...)
	h.process = harness.Start(t, "unshare", append([]string{"-n", "sh", "-c", script}, worker...)...)
	ours := namespaceOf(t, os.Getpid())
	for end := time.Now().Add(patience); namespaceOf(t, h.process.Pid()) == ours; {
		if time.Now().After(end) {
			t.Fatal("the host has no network namespace of its own")
		}
		<-time.After(5 * time.Millisecond) // polls a real process
	}
	link := fmt.Sprintf("host%d", number)
	run(t, "ip", "link", "add", "name", link, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(h.process.Pid()))
	run(t, "ip", "addr", "add", fmt.Sprintf("10.77.%d.1/24", number), "dev", link)
	run(t, "ip", "link", "set", link, "up")
	harness.WaitOK(t, "http://"+h.id()+"/health", patience)
	return h
}

func namespaceOf(t testing.TB, pid int) string {
	t.Helper()
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// vanish takes the machine off the network. It answers nothing from then on, not
// even that nobody listens, and nothing that it sends arrives.
func (h *host) vanish() { h.address4("del") }

// appear brings the machine back, with the same process on it.
func (h *host) appear() { h.address4("add") }

func (h *host) address4(what string) {
	h.t.Helper()
	run(h.t, "nsenter", "-t", fmt.Sprint(h.process.Pid()), "-n", "ip", "addr", what, h.address+"/24", "dev", "eth0")
}
