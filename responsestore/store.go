package responsestore

import (
	"container/list"
	"crypto/sha256"
	"strconv"
	"sync"
	"time"
)

const (
	// maxIdle is how long a response is kept after its last use.
	maxIdle = time.Hour

	// maxResponseShare is the part of the store, one in so many, that one response may
	// take, without what was said before.
	maxResponseShare = 8
	// maxConversationShare is that which a response may hold with all that was said
	// before. If it were the whole, a conversation could drive out all others, and
	// itself.
	maxConversationShare = 2
)

// WhileKept tells people why a response may not be there any more.
var WhileKept = "responses are kept in the memory of this server only, while there is room, and not longer than " +
	strconv.Itoa(int(maxIdle.Minutes())) + " minutes after their last use"

// What is held beside the bytes of JSON: structures, and places in maps that are half
// empty at times. A test compares it with the heap.
const (
	itemsOverhead    = 96
	responseOverhead = 512
	itemOverhead     = 256 // of an item that can be referred to
)

// An Owner is a client; the zero Owner is everybody, where clients have no keys.
type Owner [sha256.Size]byte

// OwnerOf returns the owner of what is done with an API key, which cannot be found out
// from it.
func OwnerOf(key string) Owner { return sha256.Sum256([]byte(key)) }

// A Response is what is kept of one. It is not changed once it is in a store.
type Response struct {
	ID     string
	Output *Items // the answer; its items can be referred to; behind what was sent for it

	// Head and Tail are the response object around the items of its output.
	Head, Tail []byte
}

// Input is what was said before the answer; what was sent for it is the newest link.
func (r *Response) Input() *Items { return r.Output.before }

// Object returns the response object in pieces, which must not be changed.
func (r *Response) Object() [][]byte { return [][]byte{r.Head, r.Output.json, r.Tail} }

// A Store keeps responses. It is safe for concurrent use.
type Store struct {
	limit int64 // bytes

	mu        sync.Mutex // guards what follows, and refs of Items; nothing is copied while it is held
	bytes     int64
	used      list.List // of *entry, the last used first
	responses map[key]*list.Element
	items     map[key]place
	expiry    *time.Timer // for the entry that was not used for longest; nil = there is none
}

type key struct {
	owner Owner
	id    string
}

// An entry is a response in the store.
type entry struct {
	key      key
	response *Response
	items    []string // ids of the output
	lastUse  time.Time
}

// A place is where an item is.
type place struct {
	of *list.Element
	n  int // in the output
}

// New returns a store of so many bytes, all overheads included.
func New(limitBytes int64) *Store {
	return &Store{limit: limitBytes, responses: make(map[key]*list.Element), items: make(map[key]place)}
}

// For returns what a client sees of the store.
func (s *Store) For(owner Owner) *Client { return &Client{store: s, owner: owner} }

// Bytes returns how much is kept.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// A Client is the store as one client sees it. It is safe for concurrent use.
type Client struct {
	store *Store
	owner Owner
}

// Room is how many bytes a response may take that goes on from before; nil = from
// nothing.
func (c *Client) Room(before *Items) int {
	room := c.store.limit / maxResponseShare
	if before != nil {
		room = min(room, c.store.limit/maxConversationShare-before.total)
	}
	return int(room)
}

// Save keeps a response, unless it is too large; others may have to go.
func (c *Client) Save(r *Response) {
	e := &entry{key: key{c.owner, r.ID}, response: r, items: make([]string, r.Output.Len())}
	for n := range e.items {
		e.items[n] = IDOf(r.Output.At(n))
	}
	input := r.Input()
	if e.bytes()+input.bytes()+r.Output.bytes() <= int64(c.Room(input.before)) {
		c.store.add(e)
	}
}

// Response returns a response, which counts as a use.
func (c *Client) Response(id string) (*Response, bool) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	e, ok := s.responses[key{c.owner, id}]
	if !ok {
		return nil, false
	}
	return s.use(e).response, true
}

// Conversation returns what was said up to the end of a response, which counts as a
// use.
func (c *Client) Conversation(responseID string) (*Items, bool) {
	r, ok := c.Response(responseID)
	if !ok {
		return nil, false
	}
	return r.Output, true
}

// Item returns an item of the output of a response, which counts as a use of that. It
// must not be changed.
func (c *Client) Item(id string) ([]byte, bool) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	p, ok := s.items[key{c.owner, id}]
	if !ok {
		return nil, false
	}
	return s.use(p.of).response.Output.At(p.n), true
}

// Delete removes a response, and reports whether it was there. Later ones that went on
// from it still hold what was said.
func (c *Client) Delete(id string) bool {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	e, ok := s.responses[key{c.owner, id}]
	if ok {
		s.remove(e)
	}
	return ok
}

// bytes is what an entry holds beside its items.
func (e *entry) bytes() int64 {
	n := responseOverhead + len(e.response.ID) + len(e.response.Head) + len(e.response.Tail)
	for _, id := range e.items {
		n += itemOverhead + len(id)
	}
	return int64(n)
}

func (s *Store) add(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	if old, again := s.responses[e.key]; again {
		s.remove(old)
	}
	e.lastUse = time.Now()
	element := s.used.PushFront(e)
	s.responses[e.key] = element
	for n, id := range e.items {
		s.items[key{e.key.owner, id}] = place{element, n}
	}
	s.bytes += e.bytes()
	s.retain(e.response.Output)
	for s.bytes > s.limit {
		s.remove(s.used.Back())
	}
	if s.expiry == nil && s.used.Len() > 0 {
		s.expiry = time.AfterFunc(maxIdle, s.expire)
	}
}

func (s *Store) remove(element *list.Element) {
	e := s.used.Remove(element).(*entry)
	delete(s.responses, e.key)
	for _, id := range e.items {
		delete(s.items, key{e.key.owner, id})
	}
	s.bytes -= e.bytes()
	s.release(e.response.Output)
}

// retain counts a need of a link, and with its first one that of the link before it.
// A link that nothing needed can come back: a running request may hold it.
func (s *Store) retain(i *Items) {
	for ; i != nil; i = i.before {
		if i.refs++; i.refs > 1 {
			return
		}
		s.bytes += i.bytes()
	}
}

func (s *Store) release(i *Items) {
	for ; i != nil; i = i.before {
		if i.refs--; i.refs > 0 {
			return
		}
		s.bytes -= i.bytes()
	}
}

func (s *Store) use(element *list.Element) *entry {
	s.used.MoveToFront(element)
	e := element.Value.(*entry)
	e.lastUse = time.Now()
	return e
}

// dropExpired removes what was not used for maxIdle, which is at the end of the list.
func (s *Store) dropExpired() {
	for e := s.used.Back(); e != nil && time.Since(e.Value.(*entry).lastUse) >= maxIdle; e = s.used.Back() {
		s.remove(e)
	}
}

// expire drops what nobody asks for any more, and is called when some of it may be due.
func (s *Store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	s.expiry = nil
	if oldest := s.used.Back(); oldest != nil {
		s.expiry = time.AfterFunc(maxIdle-time.Since(oldest.Value.(*entry).lastUse), s.expire)
	}
}
