package vllm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/engine"
)

const usualEvent = `{"id":"cmpl-1","choices":[{"index":0,"text":" of","logprobs":null,"finish_reason":null,"token_ids":[282]}],"usage":null}`

// What agrees with the skeleton, and what does not.
func TestSkeleton(t *testing.T) {
	replace := func(from, to string) string {
		if !strings.Contains(usualEvent, from) {
			t.Fatalf("no %s in the event", from)
		}
		return strings.Replace(usualEvent, from, to, 1)
	}
	tests := []struct {
		event string
		ids   []engine.TokenID // nil: it has to be read as JSON
	}{
		{usualEvent, []engine.TokenID{282}},
		{replace(`[282]`, `[0,2147483647,7]`), []engine.TokenID{0, 2147483647, 7}},
		{replace(`" of"`, `""`), []engine.TokenID{282}},
		{replace(`" of"`, `"\"token_ids\":[9]\\"`), []engine.TokenID{282}},
		{replace(`" of"`, `"ü\n"`), []engine.TokenID{282}},
		{replace(`" of"`, `"\u00fc"`), nil},
		{replace(`" of"`, `"\x"`), nil},
		{replace(`" of"`, "\"\t\""), nil},
		{replace(`" of"`, `"\"`), nil},
		{replace(`[282]`, `[]`), nil},
		{replace(`[282]`, `[282,]`), nil},
		{replace(`[282]`, `[,282]`), nil},
		{replace(`[282]`, `[-1]`), nil},
		{replace(`[282]`, `[012]`), nil},
		{replace(`[282]`, `[00]`), nil},
		{replace(`[282]`, `[1.5]`), nil},
		{replace(`[282]`, `[2147483648]`), nil},
		{replace(`[282]`, `[99999999999999999999999]`), nil},
		{replace(`[282]`, `[282`), nil},
		{replace(`"finish_reason":null`, `"finish_reason":"stop"`), nil},
		{replace(`"index":0`, `"index":1`), nil},
		{replace(`cmpl-1`, `cmpl-2`), nil},
		{replace(`"usage":null}`, `"usage":null,"error":{}}`), nil},
		{usualEvent + " ", nil},
		{usualEvent[:len(usualEvent)-1], nil},
		{``, nil},
	}
	var k skeleton
	if _, ok := k.read(nil, []byte(usualEvent)); ok {
		t.Error("something agrees with nothing")
	}
	k.learn([]byte(usualEvent), []engine.TokenID{282})
	for _, test := range tests {
		ids, ok := k.read(nil, []byte(test.event))
		if ok != (test.ids != nil) || ok && !slices.Equal(ids, test.ids) {
			t.Errorf("%s: %v, %v", test.event, ids, ok)
		}
		var f frame
		if err := f.decode([]byte(test.event), engine.OutputOptions{}); ok && (err != nil || !slices.Equal(f.IDs, ids)) {
			t.Errorf("%s: %v, as JSON %v, %v", test.event, ids, f.IDs, err)
		}
	}
}

func TestSkeletonIsNotLearned(t *testing.T) {
	for _, event := range []string{
		strings.Replace(usualEvent, `[282]`, `[283]`, 1), // other ids than were read
		strings.Replace(usualEvent, `"usage"`, `"token_ids":[282],"usage"`, 1),
		strings.Replace(usualEvent, `"token_ids":[`, `"token_ids": [`, 1),
		strings.Replace(usualEvent, `" of"`, `"\u00fc"`, 1),
		strings.Replace(usualEvent, `cmpl`, strings.Repeat("x", maxSkeletonBytes), 1),
	} {
		var k skeleton
		if k.learn([]byte(event), []engine.TokenID{282}); k.learned != 0 {
			t.Errorf("learned from %s", event)
		}
	}
	var k skeleton
	for i := range 100 {
		k.learn([]byte(strings.Replace(usualEvent, "cmpl", fmt.Sprint(i), 1)), []engine.TokenID{282})
	}
	if k.learned != maxLearned {
		t.Errorf("learned %d times", k.learned)
	}
}

// In recorded answers of every version the skeleton changes nothing.
func TestSkeletonOfTranscripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/transcripts/*.sse")
	agreed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var with, without frame
		for line := range strings.Lines(string(text)) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			err1 := with.read([]byte(data), engine.OutputOptions{})
			err2 := without.decode([]byte(data), engine.OutputOptions{})
			if fmt.Sprint(err1) != fmt.Sprint(err2) || !slices.Equal(with.IDs, without.IDs) || string(with.Finish) != string(without.Finish) ||
				with.Failed != without.Failed || with.TextOnly != without.TextOnly {
				t.Errorf("%s: %s: %v, %v", file, data, with.IDs, without.IDs)
			}
			if _, ok := with.usual.read(nil, []byte(data)); ok {
				agreed++
			}
		}
	}
	if agreed < 100 {
		t.Errorf("%d events of all %d transcripts agree with a skeleton", agreed, len(files))
	}
}
