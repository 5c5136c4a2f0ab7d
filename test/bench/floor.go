package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A floor is the least that a gateway which owns the tokens has to do with
// net/http on both sides: token ids to one worker, its events back, ids to text
// by table, chunks to the client, one flush each. It has no routing, no retries,
// no limits, no time-outs, no metrics, no real tokenizer, and it looks for two
// fields in an event instead of reading JSON.
type floor struct {
	worker   string // base URL
	client   http.RoundTripper
	lastID   atomic.Int64
	handicap handicap
}

// A handicap is what is planted to see that it is found: what the floor does
// more than it has to.
type handicap struct {
	burn   time.Duration // spent busily for each token
	halved bool          // each chunk is flushed in two halves
}

func parseHandicap(words []string) (h handicap, err error) {
	for _, word := range words {
		if word == "halved" {
			h.halved = true
		} else if h.burn, err = time.ParseDuration(word); err != nil {
			return h, err
		}
	}
	return h, nil
}

// runFloor serves until ctx ends.
func runFloor(ctx context.Context, address, worker string, handicaps []string) error {
	h, err := parseHandicap(handicaps)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.DisableCompression = 8192, 0, true
	f := &floor{worker: worker, client: transport, handicap: h}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		if err := f.chat(w, r); err != nil && r.Context().Err() == nil {
			log.Print("floor: ", err)
			panic(http.ErrAbortHandler)
		}
	})
	s := &http.Server{Addr: address, Handler: mux}
	context.AfterFunc(ctx, func() { s.Close() })
	return s.ListenAndServe()
}

func (f *floor) chat(w http.ResponseWriter, r *http.Request) error {
	resp, err := f.ask(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := w.(http.Flusher)
	head := `data: {"id":"chatcmpl-` + strconv.FormatInt(f.lastID.Add(1), 10) + `","object":"chat.completion.chunk","created":1790000000,"model":"` +
		modelName + `","choices":[{"index":0,"delta":{`
	out := append(make([]byte, 0, 512), head+`"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n"...)
	in := bufio.NewReader(resp.Body)
	finished := false
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok || data[0] == '[' {
			continue
		}
		ids, finish := scanEvent(data)
		out = append(append(out, head...), `"content":"`...)
		for _, id := range ids {
			out = append(out, words[id-firstWordID]...)
		}
		if out = append(out, `"},"finish_reason":`...); len(finish) > 0 {
			finished = true
			out = append(append(append(out, '"'), finish...), '"')
		} else {
			out = append(out, "null"...)
		}
		out = append(out, "}]}\n\n"...)
		for begin := time.Now(); time.Since(begin) < f.handicap.burn; {
		}
		if f.handicap.halved {
			w.Write(out[:len(out)/2])
			flusher.Flush()
			out = out[len(out)/2:]
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		flusher.Flush()
		out = out[:0]
	}
	if !finished {
		return errors.New("the worker's stream ended without a finish reason")
	}
	_, err = io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// ask sends the request on. The words of its prompt become ids by table.
func (f *floor) ask(r *http.Request) (*http.Response, error) {
	var req struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return nil, err
	}
	ids := []byte("1")
	for _, m := range req.Messages {
		for word := range strings.FieldsSeq(m.Content) {
			if n, ok := wordNumber([]byte(" " + word)); ok {
				ids = strconv.AppendInt(append(ids, ','), int64(firstWordID+n), 10)
			}
		}
	}
	body := fmt.Appendf(nil, `{"model":%q,"prompt":[%s,10],"stream":true,"return_token_ids":true,"max_tokens":%d,"temperature":0}`, modelName, ids, req.MaxTokens)
	up, err := http.NewRequestWithContext(r.Context(), http.MethodPost, f.worker+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	up.Header.Set("Content-Type", "application/json")
	resp, err := f.client.RoundTrip(up)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = fmt.Errorf("worker: %s", resp.Status)
	}
	return resp, err
}

// scanEvent finds the new ids of an event and its finish reason.
func scanEvent(data []byte) (ids []int, finish []byte) {
	_, list, _ := bytes.Cut(data, []byte(`"token_ids":[`))
	n, digits := 0, false
	for _, c := range list {
		if c >= '0' && c <= '9' {
			n, digits = n*10+int(c-'0'), true
			continue
		}
		if digits {
			ids, n, digits = append(ids, n), 0, false
		}
		if c == ']' {
			break
		}
	}
	_, finish, _ = bytes.Cut(data, []byte(`"finish_reason":"`))
	finish, _, _ = bytes.Cut(finish, []byte(`"`))
	return ids, finish
}
