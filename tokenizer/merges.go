package tokenizer

// A mergeTable maps a pair of neighbouring tokens to what they merge into: the
// rank (lower merges first) and the id, packed as rank<<32 | id.
type mergeTable struct {
	keys   []uint64
	values []uint64
	shift  uint
}

const (
	noMerge = ^uint64(0)
	noPair  = ^uint64(0)
)

func newMergeTable(n int) *mergeTable {
	bits := uint(4)
	for 1<<bits < n+n/2 {
		bits++
	}
	m := &mergeTable{make([]uint64, 1<<bits), make([]uint64, 1<<bits), 64 - bits}
	for i := range m.keys {
		m.keys[i] = noPair
	}
	return m
}

func (m *mergeTable) slot(pair uint64) int { return int(pair * hashSeed >> m.shift) }

// put enters a merge. A later one of the same pair replaces it, as in the reference.
func (m *mergeTable) put(left, right, rank, id uint32) {
	pair := uint64(left)<<32 | uint64(right)
	h := m.slot(pair)
	for m.keys[h] != noPair && m.keys[h] != pair {
		h = (h + 1) & (len(m.keys) - 1)
	}
	m.keys[h], m.values[h] = pair, uint64(rank)<<32|uint64(id)
}

func (m *mergeTable) get(left, right uint32) uint64 {
	pair := uint64(left)<<32 | uint64(right)
	for h := m.slot(pair); ; h = (h + 1) & (len(m.keys) - 1) {
		switch m.keys[h] {
		case pair:
			return m.values[h]
		case noPair:
			return noMerge
		}
	}
}
