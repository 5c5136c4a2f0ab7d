package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// These tests compare with what the reference library made of the corpus, as
// recorded by test/models/record-tokenizers.sh. The tokenizers of real models
// are fetched by test/models/fetch.sh; without them the comparison is skipped,
// unless BATON_REQUIRE_MODELS=1 says that they must be there.

type corpus struct {
	Texts []string          `json:"texts"`
	Fuzz  []string          `json:"fuzz"`
	Bench map[string]string `json:"bench"`
}

var loadCorpus = sync.OnceValues(func() (*corpus, error) {
	file, err := os.Open("testdata/corpus.json.gz")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzip, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(unzip)
	if err != nil {
		return nil, err
	}
	c := &corpus{}
	return c, json.Unmarshal(data, c)
})

func testCorpus(tb testing.TB) *corpus {
	tb.Helper()
	c, err := loadCorpus()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// modelFile returns the content of a real model's tokenizer.json, or skips the test.
func modelFile(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(modelsFolder(), name, "tokenizer.json"))
	if err != nil {
		if os.Getenv("BATON_REQUIRE_MODELS") == "1" {
			tb.Fatalf("%v (run test/models/fetch.sh)", err)
		}
		tb.Skipf("the tokenizer of %s is not there; test/models/fetch.sh fetches it", name)
	}
	return data
}

// modelsFolder is where the fetched files are.
func modelsFolder() string {
	if folder := os.Getenv("BATON_MODELS"); folder != "" {
		return folder
	}
	cache, _ := os.UserCacheDir()
	return filepath.Join(cache, "baton", "models")
}

// A variant is a real tokenizer with other parts, for pipelines of which no
// whole file is to be had.
type variant struct {
	Base  string                     `json:"base"`
	Set   map[string]json.RawMessage `json:"set"`
	Model map[string]json.RawMessage `json:"model"`
	Flags bool                       `json:"flags"`
}

func variants(tb testing.TB) map[string]variant {
	tb.Helper()
	data, err := os.ReadFile("testdata/variants.json")
	if err != nil {
		tb.Fatal(err)
	}
	var all map[string]variant
	if err := json.Unmarshal(data, &all); err != nil {
		tb.Fatal(err)
	}
	return all
}

// apply makes the variant of its base's file, as record-tokenizers.mjs does.
// (encoding/json would take a second for each of these files.)
func (v variant) apply(tb testing.TB, base []byte) []byte {
	tb.Helper()
	changed := maps.Clone(v.Set)
	if changed == nil {
		changed = map[string]json.RawMessage{}
	}
	if v.Model != nil {
		changed["model"] = replaceMembers(tb, member(tb, base, "model"), v.Model)
	}
	if v.Flags {
		var added []map[string]any
		if err := json.Unmarshal(member(tb, base, "added_tokens"), &added); err != nil {
			tb.Fatal(err)
		}
		for i, a := range added {
			a["lstrip"], a["rstrip"], a["normalized"], a["single_word"] = i%4 == 1, i%4 == 2, i%5 == 3, i%7 == 4
		}
		changed["added_tokens"], _ = json.Marshal(added)
	}
	return replaceMembers(tb, base, changed)
}

func member(tb testing.TB, object []byte, name string) json.RawMessage {
	tb.Helper()
	s := scanner{data: object}
	found := map[string]json.RawMessage{}
	if err := s.object(func(key []byte) error { return s.keep(found, key, []string{name}) }); err != nil {
		tb.Fatal(err)
	}
	return found[name]
}

// replaceMembers returns the object with other values for some members.
func replaceMembers(tb testing.TB, object []byte, values map[string]json.RawMessage) []byte {
	tb.Helper()
	out := []byte{'{'}
	put := func(name string, value json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(strconv.AppendQuote(out, name), ':'), value...), '\n')
	}
	s := scanner{data: object}
	if err := s.object(func(key []byte) error {
		name := string(key)
		value, err := s.skip()
		if _, other := values[name]; !other {
			put(name, value)
		}
		return err
	}); err != nil {
		tb.Fatal(err)
	}
	for name, value := range values {
		put(name, value)
	}
	return append(out, '}')
}

// reference reads one recording number by number.
type reference struct {
	t       *testing.T
	name    string
	numbers []uint32
	wrong   int
}

func openReference(t *testing.T, name string) *reference {
	t.Helper()
	return openRecording(t, filepath.Join("testdata", "reference", name+".bin"))
}

func openRecording(t *testing.T, path string) *reference {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (see test/models/README.md)", err)
	}
	r := &reference{t: t, name: path, numbers: make([]uint32, len(data)/4)}
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, r.numbers); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reference) next() uint32 {
	if len(r.numbers) == 0 {
		r.t.Fatalf("the recording of %s is too short: record it again", r.name)
	}
	n := r.numbers[0]
	r.numbers = r.numbers[1:]
	return n
}

// same compares got with the recorded hash.
func (r *reference) same(got, what, of string) {
	if r.next() == hash32(got) {
		return
	}
	if r.wrong++; r.wrong <= 5 {
		r.t.Errorf("%s of %q is %.200q, not what the reference gives", what, clip([]byte(of)), got)
	}
}

// hash32 is 32-bit FNV-1a.
func hash32(text string) uint32 {
	h := uint32(0x811c9dc5)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 0x01000193
	}
	return h
}

func join(ids []int32) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(id)))
	}
	return b.String()
}

func TestReference(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute of computing")
	}
	for _, name := range models(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithReference(t, name, modelFile(t, name))
		})
	}
	for name, v := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithReference(t, name, v.apply(t, modelFile(t, v.Base)))
		})
	}
}

// models are the real models in test/models/packages.txt.
func models(tb testing.TB) []string {
	tb.Helper()
	data, err := os.ReadFile("../test/models/packages.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] != "#" {
			names = append(names, fields[1])
		}
	}
	slices.Sort(names)
	return names
}

// eachModel calls do with the tokenizer of each of the real models.
func eachModel(t *testing.T, do func(t *testing.T, tok *Tokenizer)) {
	if testing.Short() {
		t.Skip("it takes half a minute of computing")
	}
	for _, name := range models(t) {
		t.Run(name, func(t *testing.T) {
			tok, err := Parse(modelFile(t, name))
			if err != nil {
				t.Fatal(err)
			}
			do(t, tok)
		})
	}
}

func compareWithReference(t *testing.T, name string, file []byte) {
	tok, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	c, ref := testCorpus(t), openReference(t, name)
	size := int(ref.next())
	for _, text := range c.Texts {
		plain, special := tok.Encode(text, false), tok.Encode(text, true)
		ref.same(join(plain), "encoding", text)
		ref.same(join(special), "encoding with special tokens", text)
		ref.same(decode(t, tok, plain, false), "decoding", text)
		ref.same(decode(t, tok, special, true), "decoding without special tokens", text)
	}
	for _, text := range c.Fuzz {
		plain, special := tok.Encode(text, false), tok.Encode(text, true)
		all := []string{join(plain), join(special), decode(t, tok, plain, false), decode(t, tok, special, true)}
		ref.same(strings.Join(all, "\x00"), "encoding and decoding", text)
	}
	seed := uint32(12345)
	random := func(n int) int {
		seed = (seed*1103515245 + 12345) & 0x7fffffff
		return int(float64(seed) / 0x80000000 * float64(n))
	}
	for range 300 {
		ids := make([]int32, 1+random(40))
		for i := range ids {
			if random(4) == 0 {
				ids[i] = int32(random(600))
			} else {
				ids[i] = int32(random(size))
			}
		}
		ref.same(decode(t, tok, ids, false), "decoding", fmt.Sprint(ids))
		ref.same(decode(t, tok, ids, true), "decoding without special tokens", fmt.Sprint(ids))
	}
	if len(ref.numbers) > 0 {
		t.Errorf("the recording has %d numbers more", len(ref.numbers))
	}
	if ref.wrong > 5 {
		t.Errorf("%d results differ", ref.wrong)
	}
}

// decode decodes at once and id by id, which must agree.
func decode(t *testing.T, tok *Tokenizer, ids []int32, skipSpecial bool) string {
	t.Helper()
	whole := tok.Decode(ids, skipSpecial)
	d := tok.NewDecoder(skipSpecial)
	var parts []byte
	for _, id := range ids {
		parts = d.Append(parts, id)
	}
	if parts = d.Flush(parts); string(parts) != whole {
		t.Errorf("decoding %v id by id gives %q, at once %q", ids, parts, whole)
	}
	return whole
}
