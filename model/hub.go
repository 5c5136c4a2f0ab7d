package model

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// hubID is the form of a hub id: NAME or ORG/NAME.
var hubID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$`)

func isHubID(path string) bool {
	return hubID.MatchString(path) && !strings.HasSuffix(strings.ToLower(path), ".gguf")
}

// locateInHubCache returns the folder that the local cache of the Hugging Face
// hub holds for id. The cache keeps each revision as a folder of links:
//
//	models--ORG--NAME/refs/main              the commit that "main" was
//	models--ORG--NAME/snapshots/COMMIT/...   the files
func locateInHubCache(id string) (string, error) {
	cache := hubCache()
	repo := filepath.Join(cache, "models--"+strings.ReplaceAll(id, "/", "--"))
	howTo := fmt.Sprintf("fetch it with \"hf download %s\", or give a folder or a .gguf file with --model-path", id)
	if !isFolder(repo) {
		return "", fmt.Errorf("%s is no file or folder here, and not in the hub cache %s; %s", id, cache, howTo)
	}

	ref, err := readFile(filepath.Join(repo, "refs", "main"))
	if err != nil {
		return "", err
	}
	if commit := strings.TrimSpace(string(ref)); commit != "" && filepath.IsLocal(commit) {
		if dir := filepath.Join(repo, "snapshots", commit); isFolder(dir) {
			return dir, nil
		}
	}
	// A model that was fetched at one revision only has no main.
	if only, _ := filepath.Glob(filepath.Join(repo, "snapshots", "*")); ref == nil && len(only) == 1 {
		return only[0], nil
	}
	return "", fmt.Errorf("the hub cache has no complete revision \"main\" of %s in %s; %s", id, repo, howTo)
}

// hubCache is the folder that huggingface_hub uses, found by its rules.
func hubCache() string {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if dir := os.Getenv(name); dir != "" {
			return dir
		}
	}
	if home := os.Getenv("HF_HOME"); home != "" {
		return filepath.Join(home, "hub")
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, _ := os.UserHomeDir() // without one the path is relative, and not there
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "huggingface", "hub")
}
