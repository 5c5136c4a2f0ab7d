package responsestore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// itemsOf returns a list of small items with these ids.
func itemsOf(before *Items, ids ...string) *Items {
	var json []byte
	var ends []int
	for _, id := range ids {
		if len(json) > 0 {
			json = append(json, ',')
		}
		json = fmt.Appendf(json, `{"id":"%s","type":"message"}`, id)
		ends = append(ends, len(json))
	}
	return NewItems(before, json, ends)
}

// turn returns a response with one item of input and one of output, with padding bytes
// in its object.
func turn(id string, before *Items, padding int) *Response {
	return &Response{
		ID:     id,
		Output: itemsOf(itemsOf(before, "in_"+id), "out_"+id),
		Head:   []byte(`{"id":"` + id + `","output":[`),
		Tail:   []byte(`],"x":"` + strings.Repeat("x", padding) + `"}`),
	}
}

func object(r *Response) string { return string(bytes.Join(r.Object(), nil)) }

// said are the ids of a conversation.
func said(i *Items) string {
	var ids []string
	for item := range i.All() {
		ids = append(ids, IDOf(item))
	}
	return strings.Join(ids, " ")
}

func TestWhatIsKept(t *testing.T) {
	c := New(1 << 20).For(OwnerOf("a"))
	first := turn("r1", nil, 3)
	c.Save(first)
	got, ok := c.Response("r1")
	if want := `{"id":"r1","output":[{"id":"out_r1","type":"message"}],"x":"xxx"}`; !ok || object(got) != want {
		t.Fatalf("%s, want %s", object(got), want)
	}
	if item, ok := c.Item("out_r1"); !ok || string(item) != `{"id":"out_r1","type":"message"}` {
		t.Errorf("item %s", item)
	}
	if _, ok := c.Item("in_r1"); ok {
		t.Error("what a client sent is no item of a response")
	}
	before, _ := c.Conversation("r1")
	c.Save(turn("r2", before, 0))
	second, _ := c.Response("r2")
	if got := said(second.Input()); got != "in_r1 out_r1 in_r2" {
		t.Errorf("before the second answer was said %s", got)
	}
	var ids []string
	for item := range second.Output.Backward() {
		ids = append(ids, IDOf(item))
	}
	if !slices.Equal(ids, []string{"out_r2", "in_r2", "out_r1", "in_r1"}) {
		t.Errorf("backward %s", ids)
	}
	for range 2 {
		c.Save(turn("r2", before, 0))
		if again, _ := c.Response("r2"); again == second {
			t.Error("the second r2 is the first")
		}
	}
}

// TestOwners: to others a response does not exist.
func TestOwners(t *testing.T) {
	s := New(1 << 20)
	a, b, everybody := s.For(OwnerOf("a")), s.For(OwnerOf("b")), s.For(Owner{})
	a.Save(turn("r1", nil, 0))
	for _, other := range []*Client{b, everybody} {
		_, response := other.Response("r1")
		_, conversation := other.Conversation("r1")
		_, item := other.Item("out_r1")
		if response || conversation || item || other.Delete("r1") {
			t.Errorf("another client sees the response %v, the conversation %v, the item %v", response, conversation, item)
		}
	}
	b.Save(turn("r1", nil, 9)) // the same id is another response
	if mine, ok := s.For(OwnerOf("a")).Response("r1"); !ok || len(mine.Tail) > 9 {
		t.Errorf("%v, %s", ok, mine.Tail)
	}
}

// TestChainsAreShared: a turn costs what was said in it, however long the conversation
// is, and a link is kept as long as a later response needs it.
func TestChainsAreShared(t *testing.T) {
	s := New(1 << 20)
	c := s.For(Owner{})
	var before *Items
	var sizes []int64
	for n := range 10 {
		last := s.Bytes()
		c.Save(turn(fmt.Sprint("r", n), before, 0))
		before, _ = c.Conversation(fmt.Sprint("r", n))
		sizes = append(sizes, s.Bytes()-last)
	}
	if slices.Min(sizes) != slices.Max(sizes) {
		t.Errorf("turns of the same size take %d bytes", sizes)
	}
	whole := said(before)
	full := s.Bytes()
	for n := range 9 {
		if id := fmt.Sprint("r", n); !c.Delete(id) || c.Delete(id) {
			t.Errorf("%s is deleted not once", id)
		}
	}
	if _, ok := c.Item("out_r3"); ok {
		t.Error("an item of a deleted response can be referred to")
	}
	if before, ok := c.Conversation("r9"); !ok || said(before) != whole || strings.Count(whole, " ") != 19 {
		t.Errorf("the conversation is %s", said(before))
	}
	if now := s.Bytes(); now >= full || now < 20*itemsOverhead {
		t.Errorf("%d bytes of %d are left", now, full)
	}
	c.Delete("r9")
	if n := s.Bytes(); n != 0 {
		t.Errorf("%d bytes are left of nothing", n)
	}
	// A running request held the conversation while all of it went.
	c.Save(turn("r10", before, 0))
	if got, ok := c.Conversation("r10"); !ok || said(got) != whole+" in_r10 out_r10" || s.Bytes() < 22*itemsOverhead {
		t.Errorf("%s of %d bytes", said(got), s.Bytes())
	}
	c.Delete("r10")
	if n := s.Bytes(); n != 0 {
		t.Errorf("%d bytes are left of nothing", n)
	}
}

// TestBounds: the last used stay, and what is too large does not come in.
func TestBounds(t *testing.T) {
	const limit = 64 << 10
	s := New(limit)
	c := s.For(Owner{})
	c.Save(turn("large", nil, limit/maxResponseShare))
	if _, ok := c.Response("large"); ok || s.Bytes() != 0 {
		t.Error("a response takes more than its share")
	}
	const padding = limit / maxResponseShare / 2
	c.Save(turn("dear", nil, 0))
	for n := range 100 {
		c.Save(turn(fmt.Sprint("r", n), nil, padding))
		if got := s.Bytes(); got > limit {
			t.Fatalf("%d bytes, limit %d", got, limit)
		}
		if _, ok := c.Item("out_dear"); !ok {
			t.Fatalf("after %d others, one that is used is gone", n)
		}
	}
	_, newest := c.Response("r99")
	_, oldest := c.Response("r80")
	if !newest || oldest {
		t.Errorf("the newest is there: %v; the oldest: %v", newest, oldest)
	}
}

// TestLongConversations: one that grows has its own share, and does not drive out all
// others.
func TestLongConversations(t *testing.T) {
	const limit, text = 64 << 10, 4 << 10
	s := New(limit)
	c := s.For(Owner{})
	c.Save(turn("dear", nil, 0))
	var before *Items
	kept := 0
	for n := range 100 {
		input := itemsOf(before, "in")
		item := fmt.Appendf(nil, `{"id":"out_%d","x":"%s"}`, n, strings.Repeat("x", text))
		r := &Response{ID: fmt.Sprint("r", n), Output: NewItems(input, item, []int{len(item)})}
		room := c.Room(before)
		c.Save(r)
		if _, ok := c.Response(r.ID); ok {
			kept++
		} else if room > text+2*itemsOverhead+responseOverhead+itemOverhead+100 {
			t.Fatalf("turn %d is not kept, with room for %d bytes", n, room)
		}
		if _, ok := c.Item("out_dear"); !ok || s.Bytes() > limit {
			t.Fatalf("turn %d: another is there: %v; %d bytes, limit %d", n, ok, s.Bytes(), limit)
		}
		before = r.Output
	}
	if share := kept * text; share > limit/maxConversationShare || share < limit/maxConversationShare/2 {
		t.Errorf("%d turns are kept, of %d bytes", kept, text)
	}
	if _, ok := c.Response("r99"); ok {
		t.Error("a conversation of more than its share is kept")
	}
}

// TestExpiry: what nobody uses goes by itself, and is not held on to.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1 << 20)
		c := s.For(Owner{})
		c.Save(turn("idle", nil, 0))
		time.Sleep(maxIdle / 2)
		c.Save(turn("used", nil, 0))
		time.Sleep(maxIdle/2 - 1)
		if _, ok := c.Response("idle"); !ok { // a use, too
			t.Error("gone before its time")
		}
		one := s.Bytes() / 2
		for range 3 {
			time.Sleep(maxIdle - 1)
			if _, ok := c.Item("out_used"); ok {
				t.Error("there after its time") // its last use was at the save
			}
			c.Response("idle")
		}
		synctest.Wait()
		if got := s.Bytes(); got != one {
			t.Errorf("%d bytes are left, want those of one response, %d", got, one)
		}
		time.Sleep(maxIdle)
		synctest.Wait()
		if s.Bytes() != 0 || s.used.Len() != 0 || s.expiry != nil {
			t.Errorf("%d bytes are left, and the timer runs: %v", s.Bytes(), s.expiry != nil)
		}
		c.Save(turn("next", nil, 0))
		time.Sleep(maxIdle)
		synctest.Wait()
		if s.Bytes() != 0 {
			t.Error("what comes after silence stays for ever")
		}
	})
}

// TestHonestBytes: the heap holds no more than is counted, also when much has come and
// gone.
func TestHonestBytes(t *testing.T) {
	for _, test := range []struct {
		name    string
		outputs int
		padding int
	}{{"small", 1, 0}, {"many items", 50, 0}, {"large", 1, 1 << 19}} {
		const limit = 8 << 20
		s := New(limit)
		before := heap()
		for n, saved := 0, int64(0); saved < 3*limit; n++ {
			r := turn(fmt.Sprintf("resp_ABCDEFGHIJKLMNOPQRSTUVWXYZ%06d", n), nil, test.padding)
			var ids []string
			for i := range test.outputs {
				ids = append(ids, fmt.Sprintf("msg_ABCDEFGHIJKLMNOPQRSTUVWXYZ%06d-%d", n, i))
			}
			r.Output = itemsOf(r.Input(), ids...)
			s.For(OwnerOf("key")).Save(r)
			saved += int64(responseOverhead + 2*itemsOverhead + test.outputs*(itemOverhead+len(ids[0])) + test.padding)
		}
		held := heap() - before
		counted := s.Bytes()
		t.Logf("%s: %d bytes are counted, %d held (%.2f)", test.name, counted, held, float64(held)/float64(counted))
		if held > counted*11/10 || held < counted/3 {
			t.Errorf("%s: %d bytes are counted, %d held", test.name, counted, held)
		}
		runtime.KeepAlive(s)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestManyAtOnce: clients that save, look, go on and delete at the same time leave a
// store whose count is right.
func TestManyAtOnce(t *testing.T) {
	const limit = 256 << 10
	s := New(limit)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			c := s.For(OwnerOf(fmt.Sprint(worker % 3)))
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			var before *Items
			for n := range 500 {
				id := fmt.Sprintf("r%d-%d", worker, n)
				c.Save(turn(id, before, random.IntN(4<<10)))
				switch other := fmt.Sprintf("r%d-%d", random.IntN(8), random.IntN(n+1)); random.IntN(4) {
				case 0:
					c.Delete(other)
				case 1:
					before, _ = c.Conversation(other)
				case 2:
					c.Item("out_" + other)
				case 3:
					if r, ok := c.Response(other); ok && !strings.HasPrefix(object(r), `{"id":"`+other) {
						t.Errorf("%s is %s", other, r.Head)
					}
				}
				if got := s.Bytes(); got > limit {
					t.Errorf("%d bytes, limit %d", got, limit)
				}
			}
		})
	}
	wg.Wait()
	for s.used.Len() > 0 {
		s.remove(s.used.Back())
	}
	if s.bytes != 0 || len(s.responses)+len(s.items) != 0 {
		t.Errorf("%d bytes, %d responses, %d items are left of nothing", s.bytes, len(s.responses), len(s.items))
	}
}

func BenchmarkSave(b *testing.B) {
	s := New(64 << 20)
	c := s.For(Owner{})
	b.ReportAllocs()
	for n := range b.N {
		c.Save(turn(fmt.Sprint("r", n), nil, 1000))
	}
}
