package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"

	"baton/tokenizer"
)

// A Digest identifies what a tokenizer does.
type Digest [sha256.Size]byte

// String is a short form for people.
func (d Digest) String() string { return hex.EncodeToString(d[:6]) }

// padding is how converters of .gguf files spell the ids between the end of the
// tokenizer's vocabulary and the end of the model's. No text has them, and a
// tokenizer.json of the same model does not list them.
var padding = regexp.MustCompile(`^\[PAD\d+\]$`)

// digestProbe has what tokenizers disagree about: digits, runs of blanks, line
// ends, apostrophes, scripts, marks, an emoji of several code points. It is not
// any user's text.
const digestProbe = "Hello, World's  12345678\t3.14\r\n\n  naïve Ünïcode 你好世界 привет مرحبا हिन्दी 👩‍👩‍👧 don't DON'T _x__ http://a.b/c?d=1 \u00a0end "

// digestOf describes the vocabulary and how text is cut into it, not the file,
// so that a folder and a .gguf file of one model have the same digest.
func digestOf(tok *tokenizer.Tokenizer) Digest {
	h := sha256.New()
	const portion = 4096 // bytes; a hash takes many small ones slowly
	buf := make([]byte, 0, portion+tokenizer.MaxTokenBytes)
	for id := range int32(tok.Size()) {
		start := len(buf)
		token, ok := tok.AppendToken(binary.LittleEndian.AppendUint32(buf, uint32(id)), id)
		if spelling := token[start+4:]; !ok || bytes.HasPrefix(spelling, []byte("[PAD")) && padding.Match(spelling) {
			continue
		}
		if buf = append(token, 0); len(buf) >= portion {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	for _, id := range tok.Encode(digestProbe, true) {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
	}
	h.Write(buf)
	return Digest(h.Sum(nil))
}
