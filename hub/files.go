package hub

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The files of a model that a frontend reads.
const (
	tokenizerFile       = "tokenizer.json"
	tokenizerConfigFile = "tokenizer_config.json"
	templateFile        = "chat_template.jinja"
	adapterFile         = "adapter_config.json"
)

// wanted are the files that are fetched where the repository has them, the
// smallest and most telling first.
var wanted = []string{
	"config.json",
	"generation_config.json",
	tokenizerConfigFile,
	templateFile,
	"chat_template.json",
	"special_tokens_map.json",
	"added_tokens.json",
	adapterFile,
	tokenizerFile,
}

// otherTokenizers are fetched where there is no tokenizer.json.
var otherTokenizers = []string{"tekken.json", "tokenizer.model"}

// decisive are the files without which a model means something else: end ids and
// the context are in them. A cached commit is complete if each of them is there, or
// is known to be none of the commit's.
var decisive = []string{"config.json", "generation_config.json", tokenizerConfigFile, templateFile, tokenizerFile}

// additionalTemplate is the name of one of several templates. There may be so many.
var additionalTemplate = regexp.MustCompile(`^additional_chat_templates/[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\.jinja$`)

const maxAdditionalTemplates = 32

// chooseFiles returns which of a repository's files are fetched, and which of those
// that are looked for it does not have. It names no file but wanted ones, whatever
// is in the list.
func chooseFiles(list []string) (fetch, absent []string) {
	has := make(map[string]bool, len(list))
	for _, name := range list {
		has[name] = true
	}
	for _, name := range wanted {
		if has[name] {
			fetch = append(fetch, name)
		} else {
			absent = append(absent, name)
		}
	}
	if !has[tokenizerFile] {
		for _, name := range otherTokenizers {
			if has[name] {
				fetch = append(fetch, name)
				break
			}
		}
	}
	var templates []string
	for _, name := range list {
		if additionalTemplate.MatchString(name) && !slices.Contains(templates, name) {
			templates = append(templates, name)
		}
	}
	slices.Sort(templates)
	return append(fetch, templates[:min(len(templates), maxAdditionalTemplates)]...), absent
}

// defaultQuant is the quantization that is taken where none is named, as llama.cpp
// does. The header is the same in all, but for the types of the weights.
const defaultQuant = "Q4_K_M"

// chooseGGUF returns the .gguf file that ref means, "" if there is none. Of a model in
// several files it is the first one, which has the metadata.
func chooseGGUF(list []string, ref Ref) string {
	if ref.File != "" {
		if slices.Contains(list, ref.File) {
			return ref.File
		}
		return ""
	}
	var all []string
	for _, name := range list {
		if validFile(name) && !isProjector(name) && isFirstPart(name) {
			all = append(all, name)
		}
	}
	// The plainest name first: quantizations in folders are the large ones.
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	quant := cmp.Or(ref.Quant, defaultQuant)
	for _, name := range all {
		if hasQuant(name, quant) {
			return name
		}
	}
	if ref.Quant == "" && len(all) > 0 {
		return all[0]
	}
	return ""
}

// isProjector tells whether a file has not the language model but what makes
// images fit for it.
func isProjector(name string) bool {
	return strings.Contains(strings.ToLower(path.Base(name)), "mmproj")
}

// partForm is how the parts of a model in several files are named.
var partForm = regexp.MustCompile(`(?i)-(\d{5})-of-\d{5}\.gguf$`)

func isFirstPart(name string) bool {
	m := partForm.FindStringSubmatch(name)
	return m == nil || m[1] == "00001"
}

// hasQuant tells whether a file's name, or that of its folder, ends with the
// quantization.
func hasQuant(name, quant string) bool {
	stem := strings.ToLower(partForm.ReplaceAllString(name, ".gguf"))
	stem = strings.TrimSuffix(stem, ".gguf")
	quant = strings.ToLower(quant)
	for _, part := range []string{path.Base(stem), path.Base(path.Dir(stem))} {
		if before, ok := strings.CutSuffix(part, quant); ok && (before == "" || strings.ContainsAny(before[len(before)-1:], "-._")) {
			return true
		}
	}
	return false
}
