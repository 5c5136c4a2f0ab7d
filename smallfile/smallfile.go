// Package smallfile reads files of configuration that are looked at again and again,
// and tells cheaply whether one has changed since.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// settleTime is how old a file's modification time must be before it is trusted to
// tell the next change: clocks of file systems tick in steps of up to two seconds,
// and two changes within a step look like one.
const settleTime = 2 * time.Second

// A Stamp is what a file was when it was read. The zero Stamp is of no file.
type Stamp struct {
	info    fs.FileInfo // nil = of no file
	settled bool        // info will tell the next change
}

// Unchanged reports whether the file at path is for sure what it was.
func (s Stamp) Unchanged(path string) bool {
	if s.info == nil || !s.settled {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(now, s.info) && now.Size() == s.info.Size() && now.ModTime().Equal(s.info.ModTime())
}

// Read reads a regular file of at most maxBytes. Its errors do not name the path.
func Read(path string, maxBytes int64) ([]byte, Stamp, error) {
	tooLong := fmt.Errorf("the file is longer than %d bytes", maxBytes)
	// A look before the opening: opening a pipe would wait for its writer.
	if stat, err := os.Stat(path); err != nil {
		return nil, Stamp{}, withoutPath(err)
	} else if stat.IsDir() {
		return nil, Stamp{}, errors.New("this is a folder, not a file")
	} else if !stat.Mode().IsRegular() {
		return nil, Stamp{}, errors.New("this is not a regular file, so it cannot be read again")
	} else if stat.Size() > maxBytes {
		return nil, Stamp{}, tooLong
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Stamp{}, withoutPath(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, Stamp{}, withoutPath(err)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, Stamp{}, withoutPath(err)
	case int64(len(content)) > maxBytes:
		return nil, Stamp{}, tooLong
	}
	return content, Stamp{info: info, settled: time.Since(info.ModTime()) > settleTime}, nil
}

func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
