package frame

import (
	"encoding/json"
	"strconv"

	"baton/engine"
)

// WithIDs encodes the body of a request, an object that must have fields, with one
// more field in front: a list of ids, written by hand because a prompt has up to
// hundreds of thousands.
func WithIDs(field string, ids []engine.TokenID, body any) ([]byte, error) {
	rest, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(field)+7*len(ids)+len(rest)+16)
	out = append(out, `{"`+field+`":[`...)
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(id), 10)
	}
	out = append(out, "],"...)
	return append(out, rest[1:]...), nil
}
