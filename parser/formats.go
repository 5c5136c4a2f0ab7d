package parser

import "strings"

func list(marker string, ends ...string) trigger {
	return trigger{marker: marker, opens: func(*Parser) machine { return &objects{ends: ends} }}
}

// bare are the beginnings of calls without marker: the whole answer must be calls.
func bareObjects(semicolons bool) func(*Parser) machine {
	return func(p *Parser) machine {
		o := &objects{semicolons: semicolons, strict: true}
		o.open(p, p.held[0])
		return o
	}
}

func bareCalls(*Parser) machine { return &pythonCalls{strict: true, state: wantName} }

var toolFormats = []*Format{
	{
		Name:     "openai",
		Aliases:  []string{"harmony", "gpt_oss", "gptoss", "gpt-oss"},
		Families: "gpt-oss",
		Markers:  []string{"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"},
		detect:   says("<|channel|>", "<|start|>"),
		harmony:  true,
	},
	{
		Name:     "kimi_k2",
		Families: "Kimi K2, K2 Thinking",
		Markers: []string{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
			"<|tool_call_argument_begin|>", "<|tool_call_end|>"},
		detect: func(template string) bool {
			return strings.Contains(template, "<|tool_calls_section_begin|>") || says("tool_declare", "<|im_middle|>")(template)
		},
		triggers: []trigger{
			{marker: "<|tool_calls_section_begin|>", opens: kimiSpec.section},
			{marker: "<|tool_call_section_begin|>", opens: kimiSpec.section},
			{marker: "<|tool_call_begin|>", opens: kimiSpec.call},
		},
	},
	deepseek("deepseek_v31", "DeepSeek V3.1", []string{"deepseek_v3_1"}, func(template string) bool {
		return strings.Contains(template, "<｜tool▁sep｜>") && !strings.Contains(template, "```json")
	}),
	deepseek("deepseek_v3", "DeepSeek V3, R1", nil, says("<｜tool▁sep｜>")),
	{
		Name:     "glm45",
		Aliases:  []string{"glm47"},
		Families: "GLM 4.5, 4.6, 4.7",
		Markers:  []string{"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"},
		detect:   says("<arg_key>", "<arg_value>"),
		triggers: []trigger{{marker: "<tool_call>", opens: glmSpec.outer}},
	},
	{
		Name:     "qwen3_coder",
		Aliases:  []string{"qwen3_xml", "nemotron_nano", "mimo"},
		Families: "Qwen3-Coder, Qwen 3.5, Nemotron 3",
		Markers:  []string{"<tool_call>", "</tool_call>"},
		detect:   says("<function=", "<parameter="),
		triggers: []trigger{
			{marker: "<tool_call>", opens: qwenSpec.outer},
			{marker: "<function=", opens: qwenSpec.inner},
		},
	},
	{
		Name:     "mistral",
		Families: "Mistral, Ministral, Magistral, Devstral",
		Markers:  []string{"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"},
		detect:   says("[TOOL_CALLS]"),
		triggers: []trigger{{marker: "[TOOL_CALLS]", opens: func(*Parser) machine { return mistral{} }}},
	},
	{
		Name:     "phi4_mini_json",
		Aliases:  []string{"phi4"},
		Families: "Phi-4-mini",
		Markers:  []string{"<|tool_call|>", "<|/tool_call|>"},
		detect:   says("functools["),
		triggers: []trigger{list("functools"), list("<|tool_call|>", "<|/tool_call|>")},
	},
	{
		Name:     "granite",
		Families: "Granite 3",
		Markers:  []string{"<|tool_call|>", "<tool_call>"},
		detect:   says("<|start_of_role|>", "<|tool_call|>"),
		triggers: []trigger{list("<|tool_call|>"), list("<tool_call>", "</tool_call>")},
	},
	{
		Name:     "hermes",
		Aliases:  []string{"qwen25", "granite4"},
		Families: "Hermes 2 Pro and 3, Qwen 2.5, Qwen 3, QwQ, Granite 4",
		Markers:  []string{"<tool_call>", "</tool_call>"},
		detect:   says("<tool_call>"),
		triggers: []trigger{list("<tool_call>", "</tool_call>")},
	},
	{
		Name:     "llama4_pythonic",
		Families: "Llama 4",
		Markers:  []string{"<|python_start|>", "<|python_end|>"},
		detect:   says("<|header_start|>", "func_name1("),
		triggers: []trigger{
			{marker: "[", first: true, opens: bareCalls},
			{marker: "<|python_start|>", opens: func(*Parser) machine { return &pythonCalls{ends: []string{"<|python_end|>"}} }},
		},
	},
	{
		Name:     "pythonic",
		Families: "Llama 3.2, ToolACE",
		detect:   says("func_name1("),
		triggers: []trigger{{marker: "[", first: true, opens: bareCalls}},
	},
	{
		Name:     "llama3_json",
		Aliases:  []string{"llama4_json"},
		Families: "Llama 3.1, 3.2, 3.3",
		Markers:  []string{"<|python_tag|>"},
		detect: func(template string) bool {
			return strings.Contains(template, "<|python_tag|>") ||
				says(`"parameters": dictionary of argument name and its value`)(template)
		},
		triggers: []trigger{
			{marker: "{", first: true, opens: bareObjects(true)},
			{marker: "<|python_tag|>", opens: func(*Parser) machine { return &objects{semicolons: true} }},
		},
	},
	{
		// What engines let a model write when guided decoding must make it call
		// (tool_choice required): a list of objects, and nothing else.
		Name:     "json",
		Families: "any, with tool_choice required",
		triggers: []trigger{
			{marker: "[", first: true, opens: bareObjects(false)},
			{marker: "{", first: true, opens: bareObjects(false)},
		},
	},
}

func deepseek(name, families string, aliases []string, detect func(string) bool) *Format {
	return &Format{
		Name:     name,
		Aliases:  aliases,
		Families: families,
		Markers: []string{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
			"<｜tool▁sep｜>"},
		detect: detect,
		triggers: []trigger{
			{marker: "<｜tool▁calls▁begin｜>", opens: deepseekSpec.section},
			{marker: "<｜tool▁call▁begin｜>", opens: deepseekSpec.call},
		},
	}
}

func thinking(name, families string, aliases []string, unopened bool, detect func(string) bool) *Format {
	return &Format{
		Name: name, Aliases: aliases, Families: families, detect: detect, unopened: unopened,
		Markers: []string{"<think>", "</think>"},
		opens:   []string{"<think>"},
		closes:  []string{"</think>"},
	}
}

var reasoningFormats = []*Format{
	{
		Name:     "openai_gptoss",
		Aliases:  []string{"gpt_oss", "gptoss", "gpt-oss", "openai", "harmony"},
		Families: "gpt-oss",
		Markers:  []string{"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"},
		detect:   says("<|channel|>", "<|start|>"),
		harmony:  true,
	},
	{
		Name:     "mistral",
		Families: "Magistral, Ministral 3",
		Markers:  []string{"[THINK]", "[/THINK]"},
		detect:   says("[THINK]"),
		opens:    []string{"[THINK]"},
		closes:   []string{"[/THINK]"},
	},
	{
		Name:     "kimi",
		Families: "Kimi-VL Thinking",
		Markers:  []string{"◁think▷", "◁/think▷"},
		detect:   says("◁think▷"),
		opens:    []string{"◁think▷"},
		closes:   []string{"◁/think▷"},
	},
	{
		Name:     "granite",
		Families: "Granite 3.2, 3.3",
		detect:   says("Here is my thought process:"),
		opens:    []string{"Here is my thought process:", "Here's my thought process:"},
		closes:   []string{"Here is my response:", "Here's my response:"},
	},
	thinking("deepseek_r1", "DeepSeek R1 and its distillations", []string{"nemotron_v3"}, true,
		func(template string) bool {
			return says("<｜Assistant｜>", "</think>")(template) && !strings.Contains(template, "thinking")
		}),
	thinking("step3", "Step 3", nil, true, nil),
	thinking("qwen3", "Qwen 3, QwQ, GLM 4.5 and later, Kimi K2 Thinking, DeepSeek V3.1, Nemotron",
		[]string{"basic", "glm45", "glm47", "deepseek_v3", "kimi_k2", "nemotron_deci", "holo2", "mimo"}, false,
		says("</think>")),
}
