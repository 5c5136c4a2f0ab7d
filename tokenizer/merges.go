package tokenizer

// A mergeTable maps a pair of neighbouring tokens to what they merge into: the
// rank (lower merges first) and the id, packed as rank<<32 | id.
type mergeTable struct {
	slots []mergeSlot
	shift uint
}

// A mergeSlot has both beside each other: finding it is a walk to memory that no
// cache holds, and one is enough.
type mergeSlot struct{ pair, merged uint64 }

const (
	noMerge = ^uint64(0)
	noPair  = ^uint64(0)
)

func newMergeTable(n int) *mergeTable {
	bits := uint(4)
	for 1<<bits < n+n/2 {
		bits++
	}
	m := &mergeTable{make([]mergeSlot, 1<<bits), 64 - bits}
	for i := range m.slots {
		m.slots[i].pair = noPair
	}
	return m
}

func (m *mergeTable) slot(pair uint64) int { return int(pair * hashSeed >> m.shift) }

// put enters a merge. A later one of the same pair replaces it, as in the reference.
func (m *mergeTable) put(left, right, rank, id uint32) {
	pair := uint64(left)<<32 | uint64(right)
	h := m.slot(pair)
	for m.slots[h].pair != noPair && m.slots[h].pair != pair {
		h = (h + 1) & (len(m.slots) - 1)
	}
	m.slots[h] = mergeSlot{pair, uint64(rank)<<32 | uint64(id)}
}

func (m *mergeTable) get(left, right uint32) uint64 {
	pair := uint64(left)<<32 | uint64(right)
	for h := m.slot(pair); ; h = (h + 1) & (len(m.slots) - 1) {
		switch s := &m.slots[h]; s.pair {
		case pair:
			return s.merged
		case noPair:
			return noMerge
		}
	}
}
