package hub

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// DefaultRevision is the one that is meant when none is named.
const DefaultRevision = "main"

// A Ref names a model of the hub, or one .gguf file of it.
type Ref struct {
	Repo     string // NAME or ORG/NAME
	Revision string // a branch, a tag or a commit
	File     string // the path of a .gguf file in the repository; "" = the folder, or whichever .gguf file Quant means
	Quant    string // a quantization such as Q4_K_M; "" = any
}

// The forms of names. That of a repository is huggingface_hub's; it and every
// revision and file can be a path below a folder of ours.
var (
	repoForm     = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?/)?[A-Za-z0-9_]([A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?$`)
	revisionForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+/-]{0,199}$`)
	quantForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	fileForm     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+@ ()/-]{0,254}$`)
	commitForm   = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// ParseRef reads a hub id as people write it, and false if text is none:
//
//	NAME  ORG/NAME  ORG/NAME@REVISION          a model
//	ORG/NAME:Q4_K_M  ORG/NAME@REVISION:Q4_K_M  the .gguf file of that quantization
//	ORG/NAME/FILE.gguf                         that .gguf file
func ParseRef(text string) (Ref, bool) {
	rest, quant, named := strings.Cut(text, ":")
	if named && !quantForm.MatchString(quant) {
		return Ref{}, false
	}
	ref := Ref{Revision: DefaultRevision, Quant: quant}
	if isGGUF(rest) {
		return ref.withFile(rest)
	}
	var pinned bool
	if ref.Repo, rest, pinned = strings.Cut(rest, "@"); pinned {
		ref.Revision = rest
	}
	return ref, ref.valid()
}

// withFile reads ORG/NAME[@REVISION]/FILE.gguf.
func (r Ref) withFile(text string) (Ref, bool) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) < 3 || r.Quant != "" {
		return Ref{}, false
	}
	name, revision, pinned := strings.Cut(parts[1], "@")
	if pinned {
		r.Revision = revision
	}
	r.Repo, r.File = parts[0]+"/"+name, parts[2]
	return r, r.valid()
}

func (r Ref) valid() bool {
	return validRepo(r.Repo) && validRevision(r.Revision) && (r.File == "" || validFile(r.File))
}

func validRepo(name string) bool {
	return repoForm.MatchString(name) && !strings.Contains(name, "--") && !strings.Contains(name, "..") &&
		!strings.HasSuffix(name, ".git") && !isGGUF(name)
}

func validRevision(name string) bool {
	return revisionForm.MatchString(name) && isPath(name)
}

func validFile(name string) bool {
	return fileForm.MatchString(name) && isPath(name) && isGGUF(name)
}

// isPath tells whether name stays below the folder that it is joined to, on every
// system.
func isPath(name string) bool {
	return fs.ValidPath(name) && filepath.IsLocal(filepath.FromSlash(name))
}

func isGGUF(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".gguf") }

// IsPinned tells whether the ref means the same for ever.
func (r Ref) IsPinned() bool { return commitForm.MatchString(r.Revision) }

// HasOwner tells whether the ref has the form ORG/NAME. Few models of the hub are
// without an owner, while many names that people give their models look so.
func (r Ref) HasOwner() bool { return strings.Contains(r.Repo, "/") }

// String is the ref as it is written.
func (r Ref) String() string {
	text := r.Repo
	if r.Revision != DefaultRevision {
		text += "@" + r.Revision
	}
	if r.File != "" {
		return text + "/" + r.File
	}
	if r.Quant != "" {
		return text + ":" + r.Quant
	}
	return text
}

// cachePath is the form of a path into a hub cache, on whichever machine.
var cachePath = regexp.MustCompile(`[/\\]models--([^/\\]+)[/\\]snapshots[/\\]([0-9a-f]{40})(?:[/\\](.+))?$`)

// RefOfCachePath reads the ref from a path into some machine's hub cache: a worker
// that was given such a path thereby names model and commit.
func RefOfCachePath(path string) (Ref, bool) {
	m := cachePath.FindStringSubmatch(path)
	if m == nil {
		return Ref{}, false
	}
	ref := Ref{Repo: strings.Replace(m[1], "--", "/", 1), Revision: m[2]}
	if file := strings.ReplaceAll(m[3], `\`, "/"); isGGUF(file) {
		ref.File = file
	} else if file != "" {
		return Ref{}, false
	}
	return ref, ref.valid()
}

// folder is the name of the repository's folder in a cache.
func (r Ref) folder() string {
	return "models--" + strings.ReplaceAll(r.Repo, "/", "--")
}

// A Found is a ref's place on this machine.
type Found struct {
	Path string // a folder, or a .gguf file of which at least the header is whole
	// Complete is false if the commit may have files that matter and are not here:
	// Python fetches only what it needs at the moment.
	Complete bool
}
