package config

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Dump writes what is in force, and where each value came from, as a file that
// --config would take.
func (c *Serve) Dump(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, "# What is in force, and where each value comes from.")
	for _, s := range c.settings {
		switch {
		case s.title != "":
			fmt.Fprintf(&b, "\n# %s\n", s.title)
		case s.noFile && s.isBool: // --dump-config itself
		case s.noFile: // a comment, as the file cannot hold it
			for _, v := range s.get() {
				fmt.Fprintf(&b, "# --%s %s (%v)\n", s.name, v, s.source)
			}
		default:
			dumpSetting(&b, s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func dumpSetting(b *strings.Builder, s *setting) {
	values := s.get()
	switch {
	case values == nil:
		line(b, "# "+s.name+":", "not set")
	case s.isList:
		line(b, s.name+":", s.source.String())
		for _, v := range values {
			fmt.Fprintf(b, "  - %s\n", yamlScalar(v))
		}
	default:
		line(b, s.name+": "+yamlScalar(values[0]), s.source.String())
	}
}

func line(b *strings.Builder, text, comment string) { fmt.Fprintf(b, "%-40s # %s\n", text, comment) }

func yamlScalar(v string) string {
	out, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Value: v})
	if err != nil {
		return fmt.Sprintf("%q", v)
	}
	return strings.TrimSuffix(string(out), "\n")
}
