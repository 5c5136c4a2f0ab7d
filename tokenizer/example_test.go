package tokenizer_test

import (
	"fmt"

	"baton/tokenizer"
)

// A vocabulary of a few letters; a real one comes from tokenizer.Load.
const vocabulary = `{
	"added_tokens": [{"id": 7, "content": "<|end|>", "special": true}],
	"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
	"decoder": {"type": "ByteLevel"},
	"model": {"type": "BPE", "vocab": {"Ã": 0, "©": 1, "t": 2, "Ġ": 3, "Ã©": 4, "tÃ©": 5, "Ġt": 6}, "merges": ["Ã ©", "t Ã©", "Ġ t"]}
}`

func ExampleDecoder() {
	t, err := tokenizer.Parse([]byte(vocabulary))
	if err != nil {
		fmt.Println(err)
		return
	}
	d := t.NewDecoder(true)
	for _, id := range []int32{2, 0, 1, 7} { // t, two halves of é, <|end|>
		fmt.Printf("%q ", d.Append(nil, id))
	}
	fmt.Printf("%q\n", d.Flush(nil))
	fmt.Println(t.Encode("té té<|end|>", false))
	// Output:
	// "t" "" "é" "" ""
	// [5 3 5 7]
}
