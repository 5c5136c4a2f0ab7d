package server

import "baton/parser"

// A readingReply collects the reasoning and the calls of one choice of a JSON reply.
type readingReply struct {
	reading   *reading
	give      func(parser.Event)
	reasoning []byte
	calls     []byte // JSON objects; the last one is open
}

// newReadingReply returns what collects for a, whose text it is, too.
func newReadingReply(a *collected, r *reading) *readingReply {
	reply := &readingReply{reading: r}
	reply.give = func(piece parser.Event) {
		switch piece.Kind {
		case parser.Content:
			a.text = append(a.text, piece.Text...)
		case parser.Reasoning:
			reply.reasoning = append(reply.reasoning, piece.Text...)
		case parser.Call:
			if len(reply.calls) > 0 {
				reply.calls = append(reply.calls, `"}},`...)
			}
			reply.calls = appendCallHead(append(reply.calls, '{'), piece)
		case parser.Arguments:
			reply.calls = appendEscaped(reply.calls, piece.Text)
		}
	}
	return reply
}

// appendTo appends the members of a message.
func (r *readingReply) appendTo(dst []byte, field string) []byte {
	if len(r.reasoning) > 0 {
		dst = appendString(append(dst, ','), field)
		dst = appendString(append(dst, ':'), r.reasoning)
	}
	if len(r.calls) > 0 {
		dst = append(append(dst, `,"tool_calls":[`...), r.calls...)
		dst = append(dst, `"}}]`...)
	}
	return dst
}
