package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// seen collects what a source reports, and its log.
type seen struct {
	mu      sync.Mutex
	reports [][]Target
	log     strings.Builder
}

func (s *seen) report(targets []Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, targets)
}

// Write takes a part of the log.
func (s *seen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *seen) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// logged is how often the log says something.
func (s *seen) logged(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.log.String(), text)
}

// mustBe fails the test unless these are the addresses of the last report, which is
// the nth.
func (s *seen) mustBe(t *testing.T, n int, addresses ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	if len(s.reports) > 0 {
		for _, target := range s.reports[len(s.reports)-1] {
			got = append(got, target.Address())
		}
	}
	if len(s.reports) != n || !slices.Equal(got, addresses) {
		t.Fatalf("report %d is %v, want the %dth to be %v", len(s.reports), got, n, addresses)
	}
}

// following runs test while source runs.
func (s *seen) following(t *testing.T, source Source, test func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx, s.report) }()
	test()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// write makes the content of a file, now.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	touch(t, path)
}

// touch makes now the time of a file: the one of the bubble.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
}

// replace puts another file in the place of path.
func replace(t *testing.T, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

const (
	one = `[{"targets": ["w1:80"]}]`
	two = "- targets: [w1:80, w2:80]\n"
)

// withFile runs test in a bubble with the source of a file that names w1.
func withFile(t *testing.T, test func(t *testing.T, path string, s *seen)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "workers.yaml")
	synctest.Test(t, func(t *testing.T) {
		s := new(seen)
		write(t, path, one)
		f, err := NewFile(path, testKinds, s.logger())
		if err != nil {
			t.Fatal(err)
		}
		s.following(t, f, func() {
			s.mustBe(t, 1, "w1:80")
			test(t, path, s)
		})
	})
}

// within is when a change is in force: a look and a second reading.
const within = lookInterval + secondReading

func TestFileChanges(t *testing.T) {
	withFile(t, func(t *testing.T, path string, s *seen) {
		time.Sleep(5 * time.Minute)
		s.mustBe(t, 1, "w1:80")
		for n, change := range []func(t *testing.T, path, content string){write, replace} {
			change(t, path, two)
			time.Sleep(within)
			s.mustBe(t, 2+2*n, "w1:80", "w2:80")
			change(t, path, one) // within the same tick of the clock, perhaps
			time.Sleep(within)
			s.mustBe(t, 3+2*n, "w1:80")
		}
		write(t, path, "[]")
		time.Sleep(within)
		s.mustBe(t, 6)
		if s.logged("level=") > 0 {
			t.Error(s.log.String())
		}
	})
}

// What is mounted from a ConfigMap is replaced by another target of a link that is
// two links away.
func TestFileBehindLinks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "workers.json")
	synctest.Test(t, func(t *testing.T) {
		put := func(version, content string) {
			t.Helper()
			if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, version, "workers.json"), content)
			if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
				t.Skip("there are no links here:", err)
			}
			if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
				t.Fatal(err)
			}
		}
		put("..v1", one)
		if err := os.Symlink(filepath.Join("..data", "workers.json"), path); err != nil {
			t.Fatal(err)
		}
		s := new(seen)
		f, err := NewFile(path, testKinds, s.logger())
		if err != nil {
			t.Fatal(err)
		}
		s.following(t, f, func() {
			time.Sleep(time.Minute)
			put("..v2", `[{"targets": ["w2:80"]}]`) // of the same length
			os.RemoveAll(filepath.Join(dir, "..v1"))
			time.Sleep(within)
			s.mustBe(t, 2, "w2:80")
		})
	})
}

// A file that cannot be used changes nothing, and the log says so once.
func TestBrokenFile(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"no list":   func(t *testing.T, path string) { write(t, path, "hello") },
		"empty":     func(t *testing.T, path string) { write(t, path, "") },
		"gone":      func(t *testing.T, path string) { os.Remove(path) },
		"a folder":  func(t *testing.T, path string) { os.Remove(path); os.Mkdir(path, 0o700) },
		"too long":  func(t *testing.T, path string) { write(t, path, two+strings.Repeat("#", maxFileBytes)) },
		"a bad one": func(t *testing.T, path string) { replace(t, path, "- targets: [w3:80, w4]\n") },
	} {
		t.Run(name, func(t *testing.T) {
			withFile(t, func(t *testing.T, path string, s *seen) {
				for n := range 2 {
					damage(t, path)
					time.Sleep(5 * time.Minute)
					s.mustBe(t, 1+n, []string{"w1:80", "w2:80"}[:1+n]...)
					if got := s.logged("the file of workers cannot be used"); got != 1+n {
						t.Errorf("%d records of damage %d: %s", got, 1+n, s.log.String())
					}
					if !strings.Contains(s.log.String(), path) {
						t.Errorf("the log does not name the file: %s", s.log.String())
					}
					os.Remove(path)
					write(t, path, two)
					time.Sleep(within)
					s.mustBe(t, 2, "w1:80", "w2:80")
					if got := s.logged("can be used again"); got != 1+n {
						t.Errorf("%d records of repair %d: %s", got, 1+n, s.log.String())
					}
				}
			})
		})
	}
}

// A reader that comes while the file is being written in place sees a part of it,
// which YAML cannot tell from the whole.
func TestFileThatIsBeingWritten(t *testing.T) {
	withFile(t, func(t *testing.T, path string, s *seen) {
		content := "- targets:\n"
		for i := range 40 {
			content += fmt.Sprintf("  - x%d:80\n", i)
			write(t, path, content)
			time.Sleep(secondReading / 2)
		}
		s.mustBe(t, 1, "w1:80")
		time.Sleep(within)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.reports) != 2 || len(s.reports[1]) != 40 {
			t.Errorf("%d reports, the last one of %d workers", len(s.reports), len(s.reports[len(s.reports)-1]))
		}
	})
}

// A file that has been the same for long is not read, only looked at.
func TestSettledFileIsNotRead(t *testing.T) {
	withFile(t, func(t *testing.T, path string, s *seen) {
		time.Sleep(time.Minute + lookInterval/2) // between two looks
		stat, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.ReplaceAll(one, "w1", "w2"))
		if err := os.Chtimes(path, stat.ModTime(), stat.ModTime()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		s.mustBe(t, 1, "w1:80") // nobody could tell
		touch(t, path)
		time.Sleep(within)
		s.mustBe(t, 2, "w2:80")
	})
}

func TestFileAtTheStart(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"none": "", "empty": "", "bad": "hello"} {
		path := filepath.Join(dir, name)
		if name != "none" {
			write(t, path, content)
		}
		if _, err := NewFile(path, testKinds, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), path+": ") || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
