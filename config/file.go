package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readAtMost reads r whole, unless it is longer than limit bytes.
func readAtMost(r io.Reader, path string, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, usage("--config: %s is longer than %s; is it the right file?", path, formatSize(limit))
	}
	return body, nil
}

// applyFile puts the file's values in force where no stronger source spoke.
func applyFile(settings []*setting, body []byte) error {
	path := lookup(settings, "config").get()[0]
	src := source{fromFile, path}
	root, err := parseYAML(path, body)
	if err != nil || root == nil {
		return err
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, node := root.Content[i], root.Content[i+1]
		s := lookup(settings, key.Value)
		switch {
		case s == nil:
			return usage("%s: there is no key %q in line %d%s", path, key.Value, key.Line,
				strings.ReplaceAll(strings.ReplaceAll(suggest(settings, key.Value), "--help", "docs/flags.md"), "--", ""))
		case s.noFile:
			return usage("%s: %s is a flag, not a key of the file", path, s.name)
		case seen[s.name]:
			return usage("%s: the key %s stands there twice", path, s.name)
		}
		seen[s.name] = true
		values, err := nodeValues(s, src, node)
		if err != nil {
			return err
		}
		if s.source.kind >= fromEnv || values == nil {
			continue
		}
		if err := s.apply(src, values); err != nil {
			return err
		}
	}
	return nil
}

// parseYAML returns the mapping of a document, or nil if the file says nothing.
func parseYAML(path string, body []byte) (*yaml.Node, error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, usage("%s is no valid YAML: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, usage("%s: a configuration file is one YAML document", path)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, usage("%s: a configuration file is a list of lines like migration-limit: 3", path)
	}
	return root, nil
}

// nodeValues gives the texts of a key; nil for null, which is "not set".
func nodeValues(s *setting, src source, node *yaml.Node) ([]string, error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return nil, nil
	case node.Kind == yaml.ScalarNode:
		return []string{node.Value}, nil
	case node.Kind == yaml.SequenceNode && s.isList:
		values := []string{}
		for _, e := range node.Content {
			if e.Kind != yaml.ScalarNode || e.Tag == "!!null" {
				return nil, usage("%s must be a list of texts (line %d)", src.of(s), e.Line)
			}
			values = append(values, e.Value)
		}
		return values, nil
	case s.isList:
		return nil, usage("%s must be a list of texts (line %d)", src.of(s), node.Line)
	}
	return nil, usage("%s must be %s, not a list or mapping (line %d)", src.of(s), s.allowed, node.Line)
}
