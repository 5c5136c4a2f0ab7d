package vllm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/stream"
	"baton/engine/transport"
)

func tokenEvent(id int, finish string) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"text":"x","finish_reason":%s,"token_ids":[%d]}]}`+"\n\n", finish, id)
}

// deltasOf returns the ids of the deltas that hold some, and how the answer ended.
func deltasOf(t *testing.T, output engine.OutputOptions, pieces ...string) (ids [][]engine.TokenID, finish engine.FinishReason, failure *engine.Error) {
	t.Helper()
	req := enginetest.NewRequest()
	req.Output = output
	deltas, failure := enginetest.Deltas(t, func(l *transport.Link) engine.Engine { return New(l) }, req, pieces...)
	for _, d := range deltas {
		if len(d.TokenIDs) > 0 {
			ids = append(ids, d.TokenIDs)
		}
		if failure == nil {
			finish = d.FinishReason
		}
	}
	return ids, finish, failure
}

func TestEventsThatArriveTogetherAreOneDelta(t *testing.T) {
	const empty = `data: {"choices":[{"index":0,"text":"","finish_reason":null,"token_ids":[]}]}` + "\n\n"
	one, two, three := tokenEvent(1, "null"), tokenEvent(2, "null"), tokenEvent(3, "null")
	last, done := tokenEvent(4, `"length"`), "data: [DONE]\n\n"
	type lists = [][]engine.TokenID
	for _, test := range []struct {
		name   string
		output engine.OutputOptions
		pieces []string
		want   lists
		kind   engine.Kind // 0: it ends well
	}{
		{name: "all but the last", pieces: []string{one + two + three + last + done}, want: lists{{1, 2, 3}, {4}}},
		{name: "one by one", pieces: []string{one, two, last + done}, want: lists{{1}, {2}, {4}}},
		{name: "behind them nothing but noise", pieces: []string{one + empty + two + ": ping\n\n" + empty, last + done}, want: lists{{1, 2}, {4}}},
		{name: "behind them half an event", pieces: []string{one + two + three[:20], three[20:] + last + done}, want: lists{{1, 2}, {3}, {4}}},
		{name: "logprobs", output: engine.OutputOptions{Logprobs: true}, pieces: []string{one + two + last + done}, want: lists{{1}, {2}, {4}}},
		{name: "an error behind them", pieces: []string{one + two + `data: {"error":{"message":"m","code":400}}` + "\n\n" + last}, want: lists{{1, 2}}, kind: engine.EngineError},
		{name: "garbage behind them", pieces: []string{one + two + "data: {\"choices\":[\n\n" + last}, want: lists{{1, 2}}, kind: engine.ProtocolError},
		{name: "an end without a reason behind them", pieces: []string{one + two + done}, want: lists{{1, 2}}, kind: engine.Disconnected},
	} {
		t.Run(test.name, func(t *testing.T) {
			ids, finish, failure := deltasOf(t, test.output, test.pieces...)
			if !slices.EqualFunc(ids, test.want, slices.Equal) {
				t.Errorf("deltas %d, want %d", ids, test.want)
			}
			switch {
			case test.kind != 0:
				if failure == nil || failure.Kind != test.kind {
					t.Errorf("error %v, want %v", failure, test.kind)
				}
			case failure != nil || finish != engine.FinishLength:
				t.Errorf("finish %q, error %v", finish, failure)
			}
		})
	}
}

// However much has arrived, a delta stays small.
func TestJoinedDeltaIsBounded(t *testing.T) {
	var all strings.Builder
	for i := range 1000 {
		all.WriteString(tokenEvent(i%50, "null"))
	}
	ids, _, failure := deltasOf(t, engine.OutputOptions{}, all.String()+tokenEvent(4, `"stop"`))
	if failure != nil {
		t.Fatal(failure)
	}
	n := 0
	for _, list := range ids {
		if len(list) > stream.MaxJoined {
			t.Errorf("a delta of %d ids", len(list))
		}
		for _, id := range list {
			if n < 1000 && int(id) != n%50 {
				t.Fatalf("id %d is %d", n, id)
			}
			n++
		}
	}
	if n != 1001 {
		t.Errorf("%d ids", n)
	}
}
