package server

import (
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
		_ = s.writeReply(w, found.AppendTo(nil)) // nobody is left to be told of a failure
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
	p := page{after: query.Get("after"), limit: limit}
	for item := range items {
		if !p.add(item) {
			break
		}
	}
	if p.after != "" {
		writeError(w, openai.InvalidRequest("after", "Invalid value for 'after': the response has no input item with this id."))
		return
	}
	_ = s.writeReply(w, p.list())
}

// A page is a part of a list.
type page struct {
	after string // the id of the last item that does not belong to it; "" = that was found
	limit int

	items       []byte
	n           int
	first, last string
	more        bool // there are items behind it
}

// add takes the next item of the list. It returns false when the page is full.
func (p *page) add(item []byte) bool {
	if p.after != "" {
		if responsestore.IDOf(item) == p.after {
			p.after = ""
		}
		return true
	}
	if p.n == p.limit {
		p.more = true
		return false
	}
	p.last = responsestore.IDOf(item)
	if p.n == 0 {
		p.first = p.last
	}
	p.items = append(appendComma(p.items), item...)
	p.n++
	return true
}

func (p *page) list() []byte {
	dst := append([]byte(`{"object":"list","data":[`), p.items...)
	dst = appendStringOrNull(append(dst, `],"first_id":`...), p.first)
	dst = appendStringOrNull(append(dst, `,"last_id":`...), p.last)
	dst = strconv.AppendBool(append(dst, `,"has_more":`...), p.more)
	return append(dst, '}')
}
