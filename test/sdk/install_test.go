package sdk

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// installed returns a folder that make has filled, kept between runs for as long
// as what identifies its content is the same.
func installed(t *testing.T, name string, identity []byte, make func(dir string)) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "baton", fmt.Sprintf("sdk-%s-%.16x", name, sha256.Sum256(identity)))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	// Another run may be installing the same: whoever is first gives it its name.
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "sdk-new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temporary)
	make(temporary)
	if err := os.Rename(temporary, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// python returns how to run a program of the folder python.
func python(program string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		requirements := path("python", "requirements.txt")
		identity := append(run(t, "", nil, "python3", "--version"), read(t, requirements)...)
		packages := installed(t, "python", identity, func(dir string) {
			venv := t.TempDir() // which has a pip, also where the system has none
			run(t, "", nil, "python3", "-m", "venv", venv)
			run(t, "", nil, filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--no-input", "--disable-pip-version-check",
				"--require-hashes", "--only-binary", ":all:", "--target", dir, "-r", requirements)
		})
		return []string{"env", "PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1", "python3", path("python", program)}
	}
}

// node returns how to run a program of the folder node.
func node(program string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		packages := installed(t, "node", read(t, path("node", "package-lock.json")), func(dir string) {
			for _, name := range []string{"package.json", "package-lock.json"} {
				if err := os.WriteFile(filepath.Join(dir, name), read(t, path("node", name)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			run(t, dir, nil, "npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
		})
		// A module finds its packages beside itself.
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(path("node"))); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		return []string{"node", filepath.Join(dir, program)}
	}
}

func golang(t *testing.T) []string {
	bin := filepath.Join(t.TempDir(), "sdktest")
	run(t, path("golang"), nil, "go", "build", "-o", bin, ".")
	return []string{bin}
}
