package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A pace is how a worker writes. It is changed with POST /pace; an answer keeps
// the one with which it began.
type pace struct {
	Gap   time.Duration // between two tokens; 0 = as fast as the connection takes them
	Stamp time.Duration // the unit in which words tell their time; 0 = word i is i
}

// A worker speaks HTTP by hand: a token is one write, and everything else of its
// event was rendered before. It speaks vLLM's /v1/completions with token ids,
// and for direct runs /v1/chat/completions with text.
type worker struct {
	pace   atomic.Pointer[pace]
	tokens atomic.Int64 // answers by the token protocol
}

func newWorker() *worker {
	w := &worker{}
	w.pace.Store(&pace{})
	return w
}

// runWorker serves until ctx ends.
func runWorker(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	return newWorker().serveAll(l)
}

// serveAll answers connections until l is closed.
func (w *worker) serveAll(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go w.serve(c)
	}
}

// serve answers the requests of one connection.
func (w *worker) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if req.Header.Get("Expect") == "100-continue" {
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		body, err := io.ReadAll(io.LimitReader(req.Body, 16<<20))
		if err != nil || w.handle(c, req, body) != nil || req.Close {
			return
		}
	}
}

func (w *worker) handle(c net.Conn, req *http.Request, body []byte) error {
	switch req.URL.Path {
	case "/v1/completions":
		w.tokens.Add(1)
		f, next := completionFrames(body)
		return w.answer(c, f, next, body)
	case "/v1/chat/completions":
		return w.answer(c, chatFrames(), 0, body)
	case "/health", "/health_generate":
		return respond(c, 200, "")
	case "/version":
		return respond(c, 200, `{"version":"0.30.1"}`)
	case "/get_model_info", "/model_info": // what SGLang's routers ask for
		return respond(c, 200, fmt.Sprintf(`{"model_path":%q,"tokenizer_path":"","served_model_name":%[1]q,"is_generation":true}`, modelName))
	case "/get_server_info", "/server_info":
		return respond(c, 200, fmt.Sprintf(`{"model_path":%q,"served_model_name":%[1]q,"version":"1","max_total_num_tokens":1000000,"dp_size":1,"tp_size":1,"internal_states":[{}]}`, modelName))
	case "/v1/models":
		return respond(c, 200, fmt.Sprintf(`{"object":"list","data":[{"id":%q,"object":"model","root":%[1]q,"max_model_len":%d}]}`, modelName, contextLength))
	case "/pace":
		var p pace
		if err := json.Unmarshal(body, &p); err != nil {
			return respond(c, 400, "")
		}
		w.pace.Store(&p)
		return respond(c, 200, "")
	case "/answers":
		return respond(c, 200, strconv.FormatInt(w.tokens.Load(), 10))
	}
	return respond(c, 404, `{"detail":"Not Found"}`)
}

func respond(c net.Conn, status int, body string) error {
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
	return err
}

// Frames are an event without its token: text stands between head and middle, an
// id, where there is one, between middle and tail.
type frames struct {
	first, next, last frame
	ids               bool
}

type frame struct{ head, middle, tail string }

// completionFrames are vLLM's, which repeats the prompt in the first event, and the
// number of the word that the answer begins with: a prompt that ends with a word is
// one with a part of its answer, which goes on.
func completionFrames(body []byte) (f frames, next int) {
	event := func(finish, prompt string) frame {
		return frame{
			head:   `data: {"id":"cmpl-1","object":"text_completion","created":1790000000,"model":"` + modelName + `","choices":[{"index":0,"text":"`,
			middle: `","logprobs":null,"finish_reason":` + finish + `,"stop_reason":null,"prompt_token_ids":` + prompt + `,"token_ids":[`,
			tail:   `]}],"usage":null}` + "\n\n",
		}
	}
	list := "null"
	if _, after, ok := bytes.Cut(body, []byte(`"prompt":`)); ok {
		list = string(after[:bytes.IndexByte(after, ']')+1])
		next = wordAfter(list)
	}
	return frames{first: event("null", list), next: event("null", "null"), last: event(`"length"`, "null"), ids: true}, next
}

// wordAfter returns the number of the word that follows the last one of a list of
// ids, 0 if that is no word.
func wordAfter(list string) int {
	last, err := strconv.Atoi(strings.TrimSpace(strings.Trim(list[strings.LastIndexByte(list, ',')+1:], "[]")))
	if number := last - firstWordID; err == nil && number >= 0 && number < wordCount {
		return (number + 1) % wordCount
	}
	return 0
}

func chatFrames() frames {
	event := func(finish string) frame {
		return frame{
			head: `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"` + modelName + `","choices":[{"index":0,"delta":{"content":"`,
			tail: `"},"logprobs":null,"finish_reason":` + finish + "}]}\n\n",
		}
	}
	return frames{first: event("null"), next: event("null"), last: event(`"length"`)}
}

const streamHeader = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"

// answer streams as many tokens as the request asks for, from the word next on.
func (w *worker) answer(c net.Conn, f frames, next int, body []byte) error {
	p := w.pace.Load()
	count := maxTokens(body)
	buf := append(make([]byte, 0, 1<<10), streamHeader...)
	start := time.Now()
	for i := range count {
		number, frame := (next+i)%wordCount, f.next
		switch {
		case i == count-1:
			frame = f.last
		case i == 0:
			frame = f.first
		}
		if p.Gap > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * p.Gap)))
		}
		if p.Stamp > 0 {
			number = stamp(time.Now(), p.Stamp)
		}
		buf = f.appendChunk(buf, frame, number)
		if i == count-1 {
			buf = append(buf, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"...)
		}
		if _, err := c.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	return nil
}

// appendChunk appends one event as one chunk of the body.
func (f *frames) appendChunk(buf []byte, frame frame, number int) []byte {
	var digits [8]byte
	id := digits[:0]
	if f.ids {
		id = strconv.AppendInt(id, int64(firstWordID+number), 10)
	}
	size := len(frame.head) + wordBytes + len(frame.middle) + len(id) + len(frame.tail)
	buf = append(strconv.AppendInt(buf, int64(size), 16), "\r\n"...)
	buf = append(append(buf, frame.head...), words[number]...)
	buf = append(append(append(buf, frame.middle...), id...), frame.tail...)
	return append(buf, "\r\n"...)
}

// maxTokens finds how many tokens a request asks for, by either name.
func maxTokens(body []byte) int {
	_, after, ok := bytes.Cut(body, []byte(`"max_tokens":`))
	if !ok {
		_, after, _ = bytes.Cut(body, []byte(`"max_completion_tokens":`))
	}
	n := 0
	for _, c := range bytes.TrimLeft(after, " ") {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
