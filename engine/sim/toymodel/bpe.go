package toymodel

import (
	"cmp"
	"slices"
)

// byteAlphabet returns, by byte value, the printable characters by which a
// byte-level BPE file stands for bytes (the table of GPT-2): printable Latin-1
// stands for itself, every other byte for the next character from U+0100 on.
func byteAlphabet() [256]string {
	var table [256]string
	next := rune(0x100)
	for b := range 256 {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF {
			table[b] = string(rune(b))
			continue
		}
		table[b] = string(next)
		next++
	}
	return table
}

type pair [2]string

// train returns the merges after which each of the words is one symbol: byte
// pair encoding, most frequent pair first, ties in the order of the pairs.
func train(words []string) []pair {
	alphabet := byteAlphabet()
	split := make([][]string, len(words))
	for i, w := range words {
		for _, b := range []byte(w) {
			split[i] = append(split[i], alphabet[b])
		}
	}
	counts := map[pair]int{}
	where := map[pair]map[int]bool{} // which words hold a pair, or once did
	count := func(i, sign int) {
		for k := 1; k < len(split[i]); k++ {
			p := pair{split[i][k-1], split[i][k]}
			counts[p] += sign
			if counts[p] == 0 {
				delete(counts, p)
			}
			if where[p] == nil {
				where[p] = map[int]bool{}
			}
			where[p][i] = true
		}
	}
	for i := range split {
		count(i, +1)
	}
	var merges []pair
	for len(counts) > 0 {
		best, most := pair{}, 0
		for p, n := range counts {
			if n > most || n == most && slices.Compare(p[:], best[:]) < 0 {
				best, most = p, n
			}
		}
		merges = append(merges, best)
		for i := range where[best] {
			count(i, -1)
			split[i] = merge(split[i], best)
			count(i, +1)
		}
	}
	return merges
}

// merge joins each occurrence of p, from the left.
func merge(symbols []string, p pair) []string {
	var out []string
	for k := 0; k < len(symbols); k++ {
		if k+1 < len(symbols) && symbols[k] == p[0] && symbols[k+1] == p[1] {
			out = append(out, p[0]+p[1])
			k++
			continue
		}
		out = append(out, symbols[k])
	}
	return out
}

// encode applies the merges to one pre-token in the order of their ranks, as
// every byte-level BPE tokenizer does; tests hold the vocabulary against it.
func encode(word string, ranks map[pair]int) []string {
	alphabet := byteAlphabet()
	var symbols []string
	for _, b := range []byte(word) {
		symbols = append(symbols, alphabet[b])
	}
	for {
		best, rank := pair{}, -1
		for k := 1; k < len(symbols); k++ {
			p := pair{symbols[k-1], symbols[k]}
			if r, ok := ranks[p]; ok && (rank < 0 || cmp.Less(r, rank)) {
				best, rank = p, r
			}
		}
		if rank < 0 {
			return symbols
		}
		symbols = merge(symbols, best)
	}
}

// Bytes returns the bytes that a token of the file stands for.
func Bytes(token string) string {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		out = append(out, byteOf[r])
	}
	return string(out)
}

// byteOf is byteAlphabet the other way round.
var byteOf = func() map[rune]byte {
	table := map[rune]byte{}
	for b, c := range byteAlphabet() {
		for _, r := range c {
			table[r] = byte(b)
		}
	}
	return table
}()
