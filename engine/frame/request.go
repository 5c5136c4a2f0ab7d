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
	out = AppendIDs(append(out, `{"`+field+`":`...), ids)
	return append(append(out, ','), rest[1:]...), nil
}

// AppendIDs appends a list of ids.
func AppendIDs(dst []byte, ids []engine.TokenID) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(id), 10)
	}
	return append(dst, ']')
}

// AppendString appends a string, as encoding/json writes it.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // of a string it never fails
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
