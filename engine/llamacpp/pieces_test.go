package llamacpp

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"testing"

	"baton/engine"
)

// smolVocabulary is the size of SmolLM2's vocabulary.
const smolVocabulary = 49152

// smolPieces are all pieces of SmolLM2 that are no valid UTF-8, and those of the
// transcripts.
var smolPieces = sync.OnceValues(func() (map[engine.TokenID][]byte, error) {
	f, err := os.Open("testdata/smollm2-pieces.txt")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pieces := make(map[engine.TokenID][]byte)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var id engine.TokenID
		var digits string
		if _, err := fmt.Sscan(lines.Text(), &id, &digits); err != nil {
			return nil, err
		}
		if pieces[id], err = hex.DecodeString(digits); err != nil {
			return nil, err
		}
	}
	return pieces, nil
})

func smolPiece(t testing.TB) func(engine.TokenID) []byte {
	pieces, err := smolPieces()
	if err != nil {
		t.Fatal(err)
	}
	return func(id engine.TokenID) []byte { return pieces[id] }
}
