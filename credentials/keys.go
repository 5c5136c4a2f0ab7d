package credentials

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Bounds of a key file.
const (
	maxKeys     = 10_000
	maxKeyBytes = 4096
)

// Keys are the keys that clients may present. They are kept as digests, so that
// all have one length and comparing them takes the same time whatever is presented.
type Keys struct {
	file *watched[[][sha256.Size]byte]
}

// NewKeys reads a file with one key a line. Blank lines count for nothing, and #
// begins a comment, at the beginning of a line or after a blank.
func NewKeys(file File, log *slog.Logger) (*Keys, error) {
	w, err := watch(log, func(contents [][]byte) ([][sha256.Size]byte, error) {
		keys, err := parseKeys(file, contents[0])
		var sums [][sha256.Size]byte
		for _, key := range keys {
			sums = append(sums, sha256.Sum256([]byte(key)))
		}
		return sums, err
	}, file)
	if err != nil {
		return nil, err
	}
	return &Keys{w}, nil
}

// Has reports whether key is one of the keys. It may be called from any goroutine.
func (k *Keys) Has(key string) bool {
	sum := sha256.Sum256([]byte(key))
	found := 0
	for _, known := range k.file.get() { // to the end: where it stands is no secret to give away either
		found |= subtle.ConstantTimeCompare(known[:], sum[:])
	}
	return found == 1
}

// A Key is the one key that the frontend itself presents.
type Key struct {
	file *watched[string]
}

// NewKey reads a file as NewKeys does; it must hold exactly one key.
func NewKey(file File, log *slog.Logger) (*Key, error) {
	w, err := watch(log, func(contents [][]byte) (string, error) {
		keys, err := parseKeys(file, contents[0])
		switch {
		case err != nil:
			return "", err
		case len(keys) > 1:
			return "", fmt.Errorf("%v: there are %d keys in the file, but only one can be presented", file, len(keys))
		}
		return keys[0], nil
	}, file)
	if err != nil {
		return nil, err
	}
	return &Key{w}, nil
}

// Get returns the key. It may be called from any goroutine.
func (k *Key) Get() string { return k.file.get() }

// parseKeys returns at least one key. Its error shows none.
func parseKeys(file File, content []byte) ([]string, error) {
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // some editors write one
	var keys []string
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		key := withoutComment(strings.TrimRight(line, "\r\n"))
		if key == "" {
			continue
		}
		if err := checkKey(key); err != nil {
			return nil, fmt.Errorf("%v: line %d: %w", file, number, err)
		}
		keys = append(keys, key)
	}
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("%v: there is no key in the file; write one a line", file)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("%v: there are more than %d keys in the file", file, maxKeys)
	}
	return keys, nil
}

// withoutComment is a line without its comment and the blanks around. A # within
// a key belongs to it: cutting there would make a shorter key, silently.
func withoutComment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return strings.Trim(line, " \t")
}

// checkKey refuses what cannot stand in an Authorization header, or is no key by
// the look of it.
func checkKey(key string) error {
	if len(key) > maxKeyBytes {
		return fmt.Errorf("the key is longer than %d bytes", maxKeyBytes)
	}
	for i := range len(key) {
		switch c := key[i]; {
		case c == ' ' || c == '\t':
			return errors.New("there is a blank inside the key; write one key a line, without a word such as Bearer before it")
		case c < ' ' || c == 0x7f:
			return errors.New("there is a control character in the key")
		case c > '~':
			return errors.New("there is a character in the key that is not ASCII")
		}
	}
	return nil
}
