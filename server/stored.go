package server

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"baton/openai"
	"baton/responsestore"
)

// What clients see of responses that are kept. Each is saved before its client can know
// that it is complete, so that the next request finds it.

// clientOf is what the client of a request sees of the store; nil = nothing is kept. A
// response belongs to the key with which it was asked for.
func (s *Server) clientOf(r *http.Request) *responsestore.Client {
	if s.cfg.ResponseStore == nil {
		return nil
	}
	var owner responsestore.Owner
	if key, presented := bearer(r); s.cfg.KnowsKey != nil && presented {
		owner = responsestore.OwnerOf(key)
	}
	return s.cfg.ResponseStore.For(owner)
}

// save keeps the response, whose object with its whole output stands in b, if it is to
// be kept.
func (o *responseOutput) save(b []byte) {
	input := o.choice.call.prepared.Input
	if input == nil {
		return
	}
	o.choice.call.kept.Save(&responsestore.Response{
		ID:     o.choice.call.ids.own,
		Output: responsestore.NewItems(input, o.items, o.ends),
		Head:   slices.Clone(b[o.objectStart:o.outputStart]),
		Tail:   slices.Clone(b[o.outputStart+len(o.items) : o.objectEnd]),
	})
}

// routeStored adds the routes of what is kept.
func (s *Server) routeStored(mux *http.ServeMux) {
	const all = "/v1/responses/"
	if s.cfg.ResponseStore == nil {
		mux.HandleFunc(all+"{id...}", func(w http.ResponseWriter, r *http.Request) { writeError(w, errNotStored()) })
		return
	}
	mux.HandleFunc("GET "+all+"{id}", s.showResponse)
	mux.HandleFunc("DELETE "+all+"{id}", s.deleteResponse)
	for _, other := range []string{"compact", "input_tokens"} { // of OpenAI's API; they are no ids
		mux.HandleFunc("POST "+all+other, s.nothing)
	}
	mux.HandleFunc(all+"{id}", notAllowed("GET", "DELETE"))
	mux.HandleFunc("GET "+all+"{id}/input_items", s.listInputItems)
	mux.HandleFunc(all+"{id}/input_items", notAllowed("GET"))
}

// findResponse returns the response that r names, or answers that there is none.
func (s *Server) findResponse(w http.ResponseWriter, r *http.Request) (*responsestore.Response, bool) {
	found, ok := s.clientOf(r).Response(r.PathValue("id"))
	if !ok {
		writeError(w, errNoResponse(r.PathValue("id")))
	}
	return found, ok
}

// showResponse gives a response as it was given to the request that asked for it.
func (s *Server) showResponse(w http.ResponseWriter, r *http.Request) {
	if v := r.URL.Query().Get("stream"); v != "" && v != "false" {
		writeError(w, openai.Unsupported("stream", "a response is streamed once, to the request that asks for it"))
		return
	}
	if found, ok := s.findResponse(w, r); ok {
		_ = s.writeReply(w, found.Object()...) // nobody is left to be told of a failure
	}
}

func (s *Server) deleteResponse(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !s.clientOf(r).Delete(id) {
		writeError(w, errNoResponse(id))
		return
	}
	writeJSON(w, http.StatusOK, append(appendString([]byte(`{"id":`), id), `,"object":"response","deleted":true}`...))
}

// Bounds of a page of input items, which are OpenAI's.
const (
	defaultPageItems = 20
	maxPageItems     = 100
)

// listInputItems gives what was said before a response, the newest first unless order
// says otherwise.
func (s *Server) listInputItems(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit := defaultPageItems
	if v := query.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxPageItems {
			writeError(w, openai.InvalidRequest("limit", "Invalid value for 'limit': must be between 1 and %d.", maxPageItems))
			return
		}
		limit = n
	}
	order := query.Get("order")
	if order != "" && order != "asc" && order != "desc" {
		writeError(w, openai.InvalidRequest("order", "Invalid value for 'order': must be asc or desc."))
		return
	}
	found, ok := s.findResponse(w, r)
	if !ok {
		return
	}
	items := found.Input().Backward()
	if order == "asc" {
		items = found.Input().All()
	}
	p := page{limit: limit}
	if after := query.Get("after"); after != "" {
		p.after = responsestore.IDHead(after)
	}
	for item := range items {
		if !p.add(item) {
			break
		}
	}
	if p.after != nil {
		writeError(w, openai.InvalidRequest("after", "Invalid value for 'after': the response has no input item with this id."))
		return
	}
	_ = s.writeReply(w, p.list()...)
}

// A page is a part of a list. Its items are large at times, and are not copied.
type page struct {
	after []byte // how the last item begins that does not belong to it; nil = that was found
	limit int

	items [][]byte
	more  bool // there are items behind it
}

// add takes the next item of the list. It returns false when the page is full.
func (p *page) add(item []byte) bool {
	switch {
	case p.after != nil:
		if bytes.HasPrefix(item, p.after) {
			p.after = nil
		}
	case len(p.items) == p.limit:
		p.more = true
		return false
	default:
		p.items = append(p.items, item)
	}
	return true
}

// list returns the list object in pieces.
func (p *page) list() [][]byte {
	list := [][]byte{[]byte(`{"object":"list","data":[`)}
	for i, item := range p.items {
		if i > 0 {
			list = append(list, []byte{','})
		}
		list = append(list, item)
	}
	first, last := "", ""
	if n := len(p.items); n > 0 {
		first, last = responsestore.IDOf(p.items[0]), responsestore.IDOf(p.items[n-1])
	}
	end := appendStringOrNull([]byte(`],"first_id":`), first)
	end = appendStringOrNull(append(end, `,"last_id":`...), last)
	end = strconv.AppendBool(append(end, `,"has_more":`...), p.more)
	return append(list, append(end, '}'))
}
