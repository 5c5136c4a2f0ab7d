package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The vocabulary is 10,000 words of four letters, such as "bacu". Each of them
// is one token with its leading space, so that a token's text carries a number.
const (
	wordCount   = 10000
	wordBytes   = 5   // with the leading space
	firstWordID = 456 // below are the 256 bytes and two hundred syllables

	consonants = "bcdfghjklmnpqrstvwxz"
	vowels     = "aeiou"
	syllables  = len(consonants) * len(vowels)

	modelName     = "toy"
	contextLength = 1 << 17
)

// A word's number is its token's place in the answer, or, where the worker
// stamps, the time at which it was written, in units of stampUnit modulo
// wordCount. That survives every gateway, through ids and text. A unit must be
// so long that no token is under way for wordCount units.
func stamp(t time.Time, unit time.Duration) int { return int(t.UnixNano() / int64(unit) % wordCount) }

// age is how long a token stamped with n had been under way at t, and on average
// half a unit more: the stamp tells when its unit began. Less another age, that
// is gone.
func age(n int, t time.Time, unit time.Duration) time.Duration {
	const ages = time.Duration(wordCount)
	return (time.Duration(t.UnixNano())%(ages*unit) + (ages-time.Duration(n))*unit) % (ages * unit)
}

var words = func() (all [wordCount]string) {
	for i := range all {
		all[i] = " " + syllable(i/syllables) + syllable(i%syllables)
	}
	return all
}()

func syllable(i int) string {
	return consonants[i/len(vowels):i/len(vowels)+1] + vowels[i%len(vowels):i%len(vowels)+1]
}

var letterValue = func() (table [256]int) {
	for i := range table {
		table[i] = -1
	}
	for i, c := range []byte(consonants) {
		table[c] = i
	}
	for i, v := range []byte(vowels) {
		table[v] = i
	}
	return table
}()

// wordNumber returns the number of the word that text begins with.
func wordNumber(text []byte) (int, bool) {
	if len(text) < wordBytes || text[0] != ' ' {
		return 0, false
	}
	n := 0
	for i := 1; i < wordBytes; i += 2 {
		c, v := letterValue[text[i]], letterValue[text[i+1]]
		if c < 0 || v < 0 {
			return 0, false
		}
		n = n*syllables + c*len(vowels) + v
	}
	return n, n < wordCount && words[n] == string(text[:wordBytes])
}

// prompt returns a text of n words.
func prompt(n int) string {
	var text []byte
	for i := range n {
		text = append(text, words[i*37%wordCount]...)
	}
	return string(text[1:])
}

const chatTemplate = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}" +
	"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// writeModel writes a model folder whose byte-level BPE has the words as tokens.
func writeModel(dir string) error {
	var tokens []string
	next := rune(0x100) // bytes that are no printable Latin-1 stand behind it, as in GPT-2's table
	for b := range rune(256) {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF {
			tokens = append(tokens, string(b))
			continue
		}
		tokens = append(tokens, string(next))
		next++
	}
	space := tokens[' ']
	var merges [][2]string
	for i := range syllables {
		merges = append(merges, [2]string{syllable(i)[:1], syllable(i)[1:]})
	}
	for i := range syllables {
		merges = append(merges, [2]string{space, syllable(i)})
	}
	for i := range wordCount {
		merges = append(merges, [2]string{space + syllable(i/syllables), syllable(i % syllables)})
	}
	for _, m := range merges {
		tokens = append(tokens, m[0]+m[1])
	}
	vocab := make(map[string]int, len(tokens))
	for id, token := range tokens {
		vocab[token] = id
	}
	type object = map[string]any
	var added []object
	for i, content := range []string{"<|im_start|>", "<|im_end|>"} {
		added = append(added, object{"id": len(tokens) + i, "content": content, "special": true,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
	}
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	for name, content := range map[string]object{
		"tokenizer.json": {
			"version": "1.0", "added_tokens": added, "pre_tokenizer": byteLevel, "decoder": byteLevel,
			"model": object{"type": "BPE", "vocab": vocab, "merges": merges},
		},
		"tokenizer_config.json":  {"eos_token": "<|im_end|>", "chat_template": chatTemplate},
		"config.json":            {"model_type": "llama", "vocab_size": len(tokens) + len(added), "max_position_embeddings": contextLength},
		"generation_config.json": {"eos_token_id": len(tokens) + 1},
	} {
		data, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write model: %w", err)
		}
	}
	return nil
}
