package responsestore

import (
	"bytes"
	"iter"
	"slices"
)

// Items is a list of items that were said one after the other, and what was said
// before them: the newest link of a conversation. It never changes, so it may be read
// from any goroutine, also when the store has let go of it.
type Items struct {
	before *Items
	json   []byte // with commas between the items
	ends   []int  // of the items in json
	total  int64  // bytes of the whole conversation up to here

	refs int // responses and links that the store keeps and that need this one; guarded by the mutex of the Store
}

// idHead is how every item begins.
const idHead = `{"id":"`

// NewItems returns the list of the items in json, which are JSON objects with commas
// between them, whose ends are given. The first member of each is its id, without
// white space before it, and without escapes in it. before is what was said earlier;
// nil = nothing. The slices are copied.
func NewItems(before *Items, json []byte, ends []int) *Items {
	i := &Items{before: before, json: slices.Clone(json), ends: slices.Clone(ends)}
	i.total = i.bytes()
	if before != nil {
		i.total += before.total
	}
	return i
}

// Len returns the number of the list's own items.
func (i *Items) Len() int { return len(i.ends) }

// At returns one of the list's own items. It must not be changed.
func (i *Items) At(n int) []byte {
	start := 0
	if n > 0 {
		start = i.ends[n-1] + 1 // behind the comma
	}
	return i.json[start:i.ends[n]:i.ends[n]]
}

// All yields all items of the conversation up to here, the oldest first.
func (i *Items) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var links []*Items
		for ; i != nil; i = i.before {
			links = append(links, i)
		}
		for _, link := range slices.Backward(links) {
			for n := range link.Len() {
				if !yield(link.At(n)) {
					return
				}
			}
		}
	}
}

// Backward is All, the newest first.
func (i *Items) Backward() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for link := i; link != nil; link = link.before {
			for n := link.Len() - 1; n >= 0; n-- {
				if !yield(link.At(n)) {
					return
				}
			}
		}
	}
}

// IDHead is how the item with this id begins.
func IDHead(id string) []byte { return []byte(idHead + id + `"`) }

// IDOf returns the id of an item.
func IDOf(item []byte) string {
	id, ok := bytes.CutPrefix(item, []byte(idHead))
	end := bytes.IndexByte(id, '"')
	if !ok || end < 0 {
		return ""
	}
	return string(id[:end])
}

// bytes is what the list itself holds.
func (i *Items) bytes() int64 {
	const wordBytes = 8
	return itemsOverhead + int64(len(i.json)) + int64(len(i.ends))*wordBytes
}
