package chattemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile templates and what has to stop them. Each would otherwise take the
// process's stack, its memory, or hours.
var hostile = map[string]struct {
	template string
	limit    string // of the *LimitError; empty: some other error
}{
	"text repeated":          {`{{ "x" * 10**9 }}`, "bytes in one text"},
	"text repeated by 2**80": {`{{ "x" * 2**80 }}`, "bytes in one text"},
	"text doubled":           {`{% set ns = namespace(s="x") %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`, "bytes in one text"},
	"text doubled by ~":      {`{% set ns = namespace(s="x") %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`, "bytes in one text"},
	"text padded":            {`{{ "x".center(10**10) }}`, "bytes in one text"},
	"text replaced":          {`{{ ("x" * 10**7).replace("", "y" * 10**7) }}`, "bytes in one text"},
	"text joined":            {`{{ ("x" * 10**6).join("y" * 10**6) }}`, "bytes in one text"},
	"text indented":          {`{{ ("\n" * 10**6)|indent(10**4, blank=true) }}`, "bytes in one text"},
	"text formatted":         {`{{ "%2000000000d" % 1 }}`, "bytes in one text"},
	"text formatted, commas": {`{{ "{:02000000000,d}".format(1) }}`, "bytes in one text"},
	"float formatted":        {`{{ "%.2000000000f" % 1.0 }}`, "digits of a number"},
	"text of JSON":           {`{{ (["x" * 10**6] * 100)|tojson }}`, "bytes in one text"},
	"text kept":              {`{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = ns.l + ["x" * 10**7 ~ i] %}{% endfor %}`, "bytes made while rendering"},
	"list repeated":          {`{{ [1] * 10**9 }}`, "elements in one list"},
	"list doubled":           {`{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}`, "elements in one list"},
	"list of characters":     {`{{ ("x" * 3 * 10**6)|list }}`, "elements in one list"},
	"list of lines":          {`{{ ("\n" * 3 * 10**6).splitlines() }}`, "elements in one list"},
	"list of words":          {`{{ ("x " * 3 * 10**6).split() }}`, "elements in one list"},
	"list filled up":         {`{{ [1]|batch(10**9, 0)|list }}`, "elements in one list"},
	"list of columns":        {`{{ [1]|slice(10**9)|list }}`, "elements in one list"},
	"lists in lists":         {`{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}`, "lists inside lists"},
	"lists in lists as JSON": {`{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l|tojson }}`, "lists inside lists"},
	"lists in lists, equal":  {`{% set a = namespace(l=[]) %}{% set b = namespace(l=[]) %}{% for i in range(99999) %}{% set a.l = [a.l] %}{% set b.l = [b.l] %}{% endfor %}{{ a.l == b.l }}{{ a.l < b.l }}`, "lists inside lists"},
	"namespace in itself":    {`{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}`, "lists inside lists"},
	"shared lists printed":   {`{% set ns = namespace(l=[]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}`, ""},
	"shared lists compared":  {`{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(60) %}{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}`, "steps of rendering"},
	"shared tuples as keys":  {`{% set ns = namespace(l=(1,)) %}{% for i in range(60) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1} }}`, "bytes of a tuple that is a key"},
	"deep tuples as keys":    {`{% set ns = namespace(l=()) %}{% for i in range(99999) %}{% set ns.l = (ns.l,) %}{% endfor %}{{ {ns.l: 1} }}`, "lists inside lists"},
	"generators on others":   {`{% set ns = namespace(g=[1]) %}{% for i in range(99999) %}{% set ns.g = ns.g|map("string") %}{% endfor %}{{ ns.g|list }}`, "lists inside lists"},
	"loops on generators":    {`{% set ns = namespace(g=[1, 2, 3]|map("string")) %}{% for i in range(99999) %}{% for x in ns.g %}{% set ns.g = loop|map("first") %}{% break %}{% endfor %}{% endfor %}`, "none"},
	"endless recursion":      {`{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`, "macro calls inside each other"},
	"recursion of callers":   {`{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}`, "macro calls inside each other"},
	"recursive loop":         {`{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}`, "macro calls inside each other"},
	"recursion that doubles": {`{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(150) }}`, "steps of rendering"},
	"loops in loops":         {`{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`, "steps of rendering"},
	"loops over filters":     {`{% for a in range(99999) %}{% if range(99999)|map("string")|select("none")|list %}{% endif %}{% endfor %}`, "steps of rendering"},
	"search in long text":    {`{% set s = "x" * 3 * 10**7 %}{% for a in range(99999) %}{% if "y" in s %}{% endif %}{% endfor %}`, "steps of rendering"},
	"methods on long text":   {`{% set s = "x" * 3 * 10**7 %}{% for a in range(99999) %}{{ s.find("y") }}{% endfor %}`, "steps of rendering"},
	"equal long texts":       {`{% set s = "x" * 3 * 10**7 %}{% set t = s ~ "" %}{% for a in range(99999) %}{% if s == t ~ "" %}{% endif %}{% endfor %}`, ""},
	"many variables":         {strings.Repeat(`{% set a%d = 1 %}`, 1), ""},
	"much output":            {`{% for i in range(99999) %}{{ "x" * 10000 }}{% endfor %}`, ""},
	"large power":            {`{{ 99999999 ** 99999 }}`, "bits of an integer"},
	"large product":          {`{% set ns = namespace(n=3) %}{% for i in range(99) %}{% set ns.n = ns.n * ns.n %}{% endfor %}`, "bits of an integer"},
	"large integer printed":  {`{{ 10 ** 5000 }}`, ""},
	"large range":            {`{{ range(10**12) }}`, ""},
	"large rounding":         {`{{ 1.5|round(10**18) }}{{ 15|round(-10**18) }}{{ 1.5|round(-10**18) }}`, "none"},
	"long attribute path":    {`{{ [1]|map(attribute="a." * 1000)|list }}`, "names with dots between"},
	"blocks in blocks":       {strings.Repeat(`{% if 1 %}`, 200) + strings.Repeat(`{% endif %}`, 200), "blocks inside blocks"},
	"brackets in brackets":   {"{{ " + strings.Repeat("(", 10000) + "1" + strings.Repeat(")", 10000) + " }}", "brackets inside brackets"},
	"lists in source":        {"{{ " + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + " }}", "brackets inside brackets"},
	"signs":                  {"{{ " + strings.Repeat("-", 10000) + "1 }}", "brackets inside brackets"},
	"nots":                   {"{{ " + strings.Repeat("not ", 10000) + "1 }}", "brackets inside brackets"},
	"conditionals":           {"{{ " + strings.Repeat("1 if 1 else ", 10000) + "1 }}", "brackets inside brackets"},
	"targets":                {"{% for " + strings.Repeat("(", 10000) + "a" + strings.Repeat(")", 10000) + " in x %}{% endfor %}", "brackets inside brackets"},
	"long sum":               {"{{ 1" + strings.Repeat(" + 1", 10000) + " }}", "operators on top of each other"},
	"long path":              {"{{ a" + strings.Repeat(".a", 10000) + " }}", "operators on top of each other"},
	"long chain of calls":    {"{{ a" + strings.Repeat("()", 10000) + " }}", "operators on top of each other"},
	"long chain of filters":  {"{{ a" + strings.Repeat("|e", 10000) + " }}", "operators on top of each other"},
	"long chain of tests":    {"{{ a" + strings.Repeat(" is none is none", 10000) + " }}", ""},
	"much source":            {strings.Repeat("x", 2<<20), "bytes of a template"},
	"texts side by side":     {"{{ " + strings.Repeat("'a'", 300_000) + " }}", "none"},
	"many tags":              {strings.Repeat("{{-1-}}", 100_000), "none"},
	"many comments":          {strings.Repeat("{#-#}", 200_000), "none"},
	"many open braces":       {strings.Repeat("{", 1<<20), ""},
	"many raws":              {strings.Repeat("{%raw%}{%", 100_000), ""},
}

// TestHostileTemplates gives each a time ten times of what it takes on a slow
// machine.
func TestHostileTemplates(t *testing.T) {
	for name, h := range hostile {
		t.Run(name, func(t *testing.T) {
			if name == "many variables" {
				h.template, h.limit = manyVariables(), "steps of rendering"
			}
			begun := time.Now()
			template, err := Parse(h.template)
			if err == nil {
				_, err = template.Render(Input{Messages: json.RawMessage(`[]`)})
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			var limit *LimitError
			var internal *InternalError
			switch {
			case errors.As(err, &internal):
				t.Fatalf("%v\n%s", err, internal.Stack)
			case h.limit == "none":
				if err != nil {
					t.Fatal(err)
				}
			case err == nil:
				t.Fatal("no error")
			case h.limit != "" && (!errors.As(err, &limit) || limit.Limit != h.limit):
				t.Fatalf("got %v, want the limit of %s", err, h.limit)
			}
		})
	}
}

// manyVariables are searched one after the other.
func manyVariables() string {
	var b strings.Builder
	b.WriteString("{% for i in range(99999) %}")
	for i := range 20_000 {
		fmt.Fprintf(&b, "{%%set a%d=1%%}", i)
	}
	return b.String() + "{% endfor %}"
}

// TestHostileInputs sends what a client could.
func TestHostileInputs(t *testing.T) {
	template, err := Parse(`{% for m in messages %}{{ m|tojson }}{% endfor %}{{ x }}`)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	for name, in := range map[string]Input{
		"deep message":      {Messages: json.RawMessage("[" + deep + "]")},
		"deep kwargs":       {Messages: json.RawMessage("[]"), Kwargs: json.RawMessage(`{"x":` + deep + "}")},
		"many digits":       {Messages: json.RawMessage(`[{"a":` + strings.Repeat("9", 100_000) + "}]")},
		"no JSON":           {Messages: json.RawMessage(`[{"a":}]`)},
		"two values":        {Messages: json.RawMessage(`[][]`)},
		"no end":            {Messages: json.RawMessage(`[{"a":"`)},
		"escape at the end": {Messages: json.RawMessage(`["\`)},
		"half an escape":    {Messages: json.RawMessage(`["\u12`)},
		"control character": {Messages: json.RawMessage("[\"\x01\"]")},
		"nothing":           {},
		"null":              {Messages: json.RawMessage(`null`)},
		"object":            {Messages: json.RawMessage(`{}`)},
		"texts":             {Messages: json.RawMessage(`["a"]`)},
		"tools":             {Messages: json.RawMessage(`[]`), Tools: json.RawMessage(`{}`)},
		"documents":         {Messages: json.RawMessage(`[]`), Documents: json.RawMessage(`[1]`)},
		"kwargs":            {Messages: json.RawMessage(`[]`), Kwargs: json.RawMessage(`[]`)},
		"kwargs for tools":  {Messages: json.RawMessage(`[]`), Kwargs: json.RawMessage(`{"tools":[]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := template.Render(in)
			var limit *LimitError
			var input *InputError
			if !errors.As(err, &limit) && !errors.As(err, &input) || text != "" {
				t.Fatalf("got %q, %v", text, err)
			}
		})
	}
}
