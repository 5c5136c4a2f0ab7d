package discovery

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const testInterval = 5 * time.Second

// A zone plays a name server, which speaks with the real resolver through pipes.
type zone struct {
	mu       sync.Mutex
	records  map[string][][]byte // the data of a name's records, by "name TYPE"
	fails    map[string]bool     // "name TYPE" that are answered with SERVFAIL
	dead     bool                // nobody answers
	question map[string]int
}

// The types of records, RFC 1035 3.2.2, RFC 3596 and RFC 2782.
var recordTypes = map[uint16]string{1: "A", 28: "AAAA", 33: "SRV"}

func (z *zone) set(name, kind string, data ...[]byte) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.records == nil {
		z.records, z.fails, z.question = make(map[string][][]byte), make(map[string]bool), make(map[string]int)
	}
	z.records[name+" "+kind] = data
}

func (z *zone) do(change func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	change()
}

// resolver is the resolver of the machine, apart from the servers that it asks.
func (z *zone) resolver(t *testing.T) *net.Resolver {
	system, ok := SystemResolver.(*net.Resolver)
	if !ok {
		t.Fatalf("the system's resolver is a %T", SystemResolver)
	}
	r := &net.Resolver{PreferGo: system.PreferGo, StrictErrors: system.StrictErrors}
	r.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		z.mu.Lock()
		defer z.mu.Unlock()
		if z.dead {
			return nil, errors.New("connection refused")
		}
		ours, theirs := net.Pipe() // no packets, so the resolver speaks as over TCP
		go z.serve(theirs)
		return ours, nil
	}
	return r
}

// serve answers the questions of one connection. RFC 1035, 4.2.2: each message
// follows its length in two bytes.
func (z *zone) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := z.answer(query)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// answer makes the reply to a query: RFC 1035, 4.1.
func (z *zone) answer(query []byte) []byte {
	end := 12 // behind the header
	var labels []string
	for query[end] != 0 {
		n := int(query[end])
		labels = append(labels, string(query[end+1:end+1+n]))
		end += 1 + n
	}
	end += 1 + 4 // the root, and the type and the class of the question
	kind := recordTypes[binary.BigEndian.Uint16(query[end-4:])]
	key := strings.Join(labels, ".") + " " + kind

	z.mu.Lock()
	defer z.mu.Unlock()
	z.question[key]++
	data, exists := z.records[key]
	code := byte(0)
	switch {
	case z.fails[key]:
		code, data = 2, nil // SERVFAIL
	case !exists:
		code = 3 // NXDOMAIN
	}
	reply := append([]byte(nil), query[:2]...)                      // the id
	reply = append(reply, 0x84, 0x80|code, 0, 1)                    // an authoritative reply, one question
	reply = binary.BigEndian.AppendUint16(reply, uint16(len(data))) // answers
	reply = append(reply, 0, 0, 0, 0)
	reply = append(reply, query[12:end]...)
	for _, d := range data {
		reply = append(reply, 0xc0, 12) // the question's name
		reply = append(reply, query[end-4:end]...)
		reply = append(reply, 0, 0, 0, 30)
		reply = binary.BigEndian.AppendUint16(reply, uint16(len(d)))
		reply = append(reply, d...)
	}
	return reply
}

func ip(text string) []byte { return netip.MustParseAddr(text).AsSlice() }

func srv(target string, port uint16) []byte {
	data := binary.BigEndian.AppendUint16([]byte{0, 1, 0, 1}, port) // priority and weight
	for label := range strings.SplitSeq(strings.TrimSuffix(target, "."), ".") {
		if label != "" {
			data = append(append(data, byte(len(label))), label...)
		}
	}
	return append(data, 0)
}

// warm makes the resolver read this machine's configuration outside any bubble: what
// it makes then lives as long as the process.
var warm = sync.OnceFunc(func() { net.DefaultResolver.LookupNetIP(context.Background(), "ip", "localhost") })

// withNames runs test in a bubble with a zone.
func withNames(t *testing.T, test func(t *testing.T, z *zone, s *seen)) {
	t.Helper()
	warm()
	synctest.Test(t, func(t *testing.T) { test(t, new(zone), new(seen)) })
}

var testName = Name{Host: "workers.test.", Port: "8000", Scheme: "http"}

func TestAddresses(t *testing.T) {
	withNames(t, func(t *testing.T, z *zone, s *seen) {
		z.set("workers.test", "A", ip("10.0.0.10"), ip("10.0.0.9"))
		z.set("workers.test", "AAAA", ip("2001:db8::2"))
		name := testName
		name.Kind = "vllm"
		s.following(t, Addresses(name, testInterval, z.resolver(t), s.logger()), func() {
			s.mustBe(t, 1, "10.0.0.9:8000", "10.0.0.10:8000", "[2001:db8::2]:8000")
			if got := s.reports[0][2]; got != (Target{URL: "http://[2001:db8::2]:8000", Kind: "vllm"}) {
				t.Errorf("%+v", got)
			}
			z.set("workers.test", "A", ip("10.0.0.9"), ip("10.0.0.10"), ip("10.0.0.9"))
			time.Sleep(10 * testInterval)
			s.mustBe(t, 1, "10.0.0.9:8000", "10.0.0.10:8000", "[2001:db8::2]:8000") // another order is no change
			z.do(func() {
				if n := z.question["workers.test A"]; n != 11 {
					t.Errorf("asked %d times in 10 intervals", n)
				}
			})
			z.set("workers.test", "A")
			time.Sleep(testInterval)
			s.mustBe(t, 2, "[2001:db8::2]:8000")
			z.set("workers.test", "A", ip("10.0.0.11"))
			z.do(func() { delete(z.records, "workers.test AAAA") })
			time.Sleep(testInterval)
			s.mustBe(t, 3, "10.0.0.11:8000")
			if s.logged("level=") > 0 {
				t.Error(s.log.String())
			}
		})
	})
}

func TestServices(t *testing.T) {
	withNames(t, func(t *testing.T, z *zone, s *seen) {
		z.set("_http._tcp.workers.test", "SRV", srv("vllm-1.workers.test.", 8001), srv("vllm-0.workers.test.", 8000), srv("VLLM-0.workers.test.", 8000))
		name := Name{Host: "_http._tcp.workers.test.", Scheme: "https"}
		s.following(t, Services(name, testInterval, z.resolver(t), s.logger()), func() {
			s.mustBe(t, 1, "vllm-0.workers.test:8000", "vllm-1.workers.test:8001")
			if got := s.reports[0][0].URL; got != "https://vllm-0.workers.test:8000" {
				t.Error(got)
			}
			z.set("_http._tcp.workers.test", "SRV", srv("vllm-1.workers.test.", 8001))
			time.Sleep(testInterval)
			s.mustBe(t, 2, "vllm-1.workers.test:8001")
			for _, useless := range [][]byte{srv(".", 0), srv("vllm-0.workers.test.", 0), srv("vllm 0.workers.test.", 1)} {
				z.set("_http._tcp.workers.test", "SRV", useless)
				time.Sleep(testInterval)
				s.mustBe(t, 2, "vllm-1.workers.test:8001")
			}
		})
	})
}

// A look-up that fails, in whole or in part, or finds nothing, changes nothing.
func TestNamesThatCannotBeLookedUp(t *testing.T) {
	for name, change := range map[string]func(z *zone){
		"no answer":             func(z *zone) { z.dead = true },
		"failure":               func(z *zone) { z.fails["workers.test A"], z.fails["workers.test AAAA"] = true, true },
		"failure of one family": func(z *zone) { z.fails["workers.test AAAA"] = true },
		"no name":               func(z *zone) { clear(z.records) },
		"no records":            func(z *zone) { z.records["workers.test A"] = nil; delete(z.records, "workers.test AAAA") },
	} {
		t.Run(name, func(t *testing.T) {
			withNames(t, func(t *testing.T, z *zone, s *seen) {
				z.set("workers.test", "A", ip("10.0.0.9"))
				z.set("workers.test", "AAAA", ip("::9"))
				s.following(t, Addresses(testName, testInterval, z.resolver(t), s.logger()), func() {
					s.mustBe(t, 1, "10.0.0.9:8000", "[::9]:8000")
					for n := 1; n <= 2; n++ {
						z.do(func() { change(z) })
						time.Sleep(5 * time.Minute)
						s.mustBe(t, n, []string{"10.0.0.9:8000", "[::9]:8000"}[n-1:]...)
						if got := s.logged("those that were found before stay"); got != n || !strings.Contains(s.log.String(), "workers.test.") {
							t.Errorf("%d records of outage %d: %s", got, n, s.log.String())
						}
						z.do(func() { z.dead = false; clear(z.fails) })
						z.set("workers.test", "A")
						z.set("workers.test", "AAAA", ip("::9"))
						time.Sleep(time.Minute)
						s.mustBe(t, 2, "[::9]:8000")
						if got := s.logged("looked up again"); got != n {
							t.Errorf("%d records of return %d: %s", got, n, s.log.String())
						}
					}
				})
			})
		})
	}
}

// A name that is not there yet is no reason to give up.
func TestNameThatComesLater(t *testing.T) {
	withNames(t, func(t *testing.T, z *zone, s *seen) {
		z.set("other.test", "A")
		s.following(t, Addresses(testName, testInterval, z.resolver(t), s.logger()), func() {
			time.Sleep(time.Minute)
			s.mustBe(t, 0)
			if s.logged("baton keeps trying") != 1 {
				t.Error(s.log.String())
			}
			z.do(func() { z.dead = true }) // another trouble is worth another word
			time.Sleep(time.Minute)
			if s.logged("baton keeps trying") != 2 {
				t.Error(s.log.String())
			}
			z.do(func() { z.dead = false })
			z.set("workers.test", "A", ip("10.0.0.1"))
			time.Sleep(time.Minute)
			s.mustBe(t, 1, "10.0.0.1:8000")
		})
	})
}

// many is a resolver with more answers than there may be.
type many struct{ Resolver }

func (many) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var ips []netip.Addr
	for ip := netip.MustParseAddr("10.0.0.0"); len(ips) <= maxTargets; ip = ip.Next() {
		ips = append(ips, ip)
	}
	return ips, nil
}

// hanging is a resolver that never answers by itself.
type hanging struct{ Resolver }

func (hanging) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestLookUpsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(seen)
		s.following(t, Addresses(testName, testInterval, many{}, s.logger()), func() {
			time.Sleep(5 * time.Minute)
			s.mustBe(t, 0)
			if s.logged("the limit is 10000") != 1 {
				t.Error(s.log.String())
			}
		})
		s = new(seen)
		s.following(t, Addresses(testName, testInterval, hanging{}, s.logger()), func() {
			time.Sleep(lookUpTimeout + time.Second)
			s.mustBe(t, 0)
			if s.logged("deadline exceeded") != 1 {
				t.Error(s.log.String())
			}
		}) // and the end does not wait for the next one
	})
}
