package config

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"baton/test/golden"
)

//go:generate go test -run TestFlagsDoc -update .

var update = flag.Bool("update", false, "rewrite docs/flags.md")

func TestFlagsDoc(t *testing.T) {
	golden.Check(t, filepath.Join("..", "docs", "flags.md"), string(markdown()), *update, "go generate ./config")
}

// markdown is docs/flags.md.
func markdown() []byte {
	var b bytes.Buffer
	b.WriteString(markdownIntro)
	settings := newServe().settings
	for _, s := range settings {
		if s.title != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| flag | environment | default | meaning | allowed |\n|---|---|---|---|---|\n", s.title)
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.TrimSpace("--"+s.name+" "+s.operand),
			markdownEnv(s), markdownDefault(s), cell(s.meaning), cell(s.allowed))
	}
	b.WriteString(markdownOthers)
	for _, s := range settings {
		for _, o := range s.others {
			fmt.Fprintf(&b, "| `%s` | `--%s` | %s |\n", o.name, s.name, o.unit.name)
		}
	}
	b.WriteString(markdownDemo)
	for _, s := range newDemo().settings {
		if s.title == "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimSpace("--"+s.name+" "+s.operand),
				markdownDefault(s), cell(s.meaning), cell(s.allowed))
		}
	}
	return b.Bytes()
}

func markdownEnv(s *setting) string {
	if s.noEnv {
		return ""
	}
	return "`" + s.env() + "`"
}

func markdownDefault(s *setting) string {
	switch {
	case s.isBool:
		return ""
	case s.unset:
		return "not set"
	}
	return "`" + s.initial[0] + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

const markdownIntro = `# The settings of ` + "`baton serve`" + `

Generated from the declarations in ` + "`config/`" + ` by ` + "`go generate ./config`" + `; a test fails when this file is stale.

A flag beats the environment, the environment beats the file that ` + "`--config`" + ` names, the file beats the default.
The keys of the file are the flags' names without dashes in front:

` + "```yaml" + `
worker:
  - http://10.0.0.1:8000
  - http://10.0.0.2:8000
migration-limit: 3
` + "```" + `

Durations are written with their unit (` + "`500ms`, `30s`, `5m`" + `), sizes as ` + "`192MiB`" + `; a duration of 0 is off. A flag that takes a list is repeated;
in the environment its elements are separated by commas. A list is replaced as a whole by a stronger source.
An empty variable counts as not set. ` + "`--dump-config`" + ` prints what is in force and where each value comes from.
A wrong value, flag or key is one sentence and exit status 2. What a right value names and what cannot be used (a file that is
not there, a damaged model folder, a port that is taken) is one sentence and exit status 1.
`

const markdownOthers = `
## Variables of the reference frontend

These variables of NVIDIA Dynamo's frontend have no flag there. They are honoured where the derived variable is not set.

| variable | means | in |
|---|---|---|
`

const markdownDemo = `
## The settings of ` + "`baton demo`" + `

Flags only: the demo reads neither the environment nor a file.

| flag | default | meaning | allowed |
|---|---|---|---|
`
