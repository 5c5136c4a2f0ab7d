package parser

// The formats of calls, in the order in which a template is asked for them: a
// format of which another is a part stands behind that. Each names the template
// that teaches it; testdata has an example of each, with its source.
var toolFormats = []*Format{
	{
		// openai/gpt-oss-120b: <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
		Name:     "openai",
		Aliases:  []string{"harmony", "gpt_oss", "gptoss", "gpt-oss"},
		Families: "gpt-oss",
		Markers:  harmonyMarkers,
		taught:   []string{"<|channel|>", "<|start|>"},
		harmony:  true,
	},
	{
		// moonshotai/Kimi-K2-Instruct: <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}<|tool_call_end|>
		Name:     "kimi_k2",
		Families: "Kimi K2, K2 Thinking, K2.5",
		Markers: []string{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
			"<|tool_call_argument_begin|>", "<|tool_call_end|>"},
		taught: []string{"<|tool_calls_section_begin|>"},
		triggers: []trigger{
			{marker: "<|tool_calls_section_begin|>", opens: kimiSpec.section},
			{marker: "<|tool_call_section_begin|>", opens: kimiSpec.section},
			{marker: "<|tool_call_begin|>", opens: kimiSpec.call},
		},
	},
	{
		// deepseek-ai/DeepSeek-V3.2: <｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">...
		Name:     "deepseek_v32",
		Aliases:  []string{"deepseek_v3_2", "deepseek_v4", "deepseek-v4", "deepseekv4"},
		Families: "DeepSeek V3.2, V4",
		Markers:  []string{"｜DSML｜"},
		taught:   []string{"｜DSML｜"},
		triggers: []trigger{
			{marker: "<｜DSML｜function_calls>", opens: dsmlSpec("</｜DSML｜function_calls>").outer},
			{marker: "<｜DSML｜tool_calls>", opens: dsmlSpec("</｜DSML｜tool_calls>").outer},
			{marker: "<｜DSML｜invoke name=", opens: dsmlSpec("</｜DSML｜tool_calls>").inner},
		},
	},
	{
		// deepseek-ai/DeepSeek-V3.1: <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜>
		Name:     "deepseek_v31",
		Aliases:  []string{"deepseek_v3_1"},
		Families: "DeepSeek V3.1",
		Markers:  deepseekMarkers,
		taught:   []string{"<｜tool▁sep｜>"},
		unlike:   []string{"```json"},
		triggers: deepseekTriggers,
	},
	{
		// deepseek-ai/DeepSeek-V3: <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME, and the arguments as a code block
		Name:     "deepseek_v3",
		Families: "DeepSeek V3, R1",
		Markers:  deepseekMarkers,
		taught:   []string{"<｜tool▁sep｜>"},
		triggers: deepseekTriggers,
	},
	{
		// stepfun-ai/step3: <｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME">...
		Name:     "step3",
		Families: "Step 3",
		Markers: []string{"<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_call_begin｜>", "<｜tool_call_end｜>",
			"<｜tool_sep｜>"},
		taught:   []string{"steptml:"},
		triggers: []trigger{{marker: "<｜tool_calls_begin｜>", opens: stepSpec.outer}},
	},
	{
		// zai-org/GLM-4.5: <tool_call>NAME, then lines of <arg_key>KEY</arg_key> and <arg_value>VALUE</arg_value>
		Name:     "glm45",
		Aliases:  []string{"glm47", "ling3", "poolside_v1"},
		Families: "GLM 4.5, 4.6, 4.7, 5, Ling 3, Laguna",
		Markers:  []string{"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"},
		taught:   []string{"<tool_call>", "<arg_key>", "<arg_value>"},
		triggers: []trigger{{marker: "<tool_call>", opens: glmSpec.outer}},
	},
	{
		// MiniMaxAI/MiniMax-M2: <minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>
		Name:     "minimax_m2",
		Families: "MiniMax M2",
		Markers:  []string{"<minimax:tool_call>", "</minimax:tool_call>"},
		taught:   []string{"<minimax:tool_call>", `<invoke name="`},
		triggers: []trigger{{marker: "<minimax:tool_call>", opens: minimaxSpec.outer}},
	},
	{
		// ByteDance-Seed/Seed-OSS-36B-Instruct: the elements of qwen3_coder in <seed:tool_call>
		Name:     "seed_oss",
		Families: "Seed OSS",
		Markers:  []string{"<seed:tool_call>", "</seed:tool_call>"},
		taught:   []string{"seed:tool_call"},
		triggers: []trigger{{marker: "<seed:tool_call>", opens: seedSpec.outer}},
	},
	{
		// Qwen/Qwen3-Coder-30B-A3B-Instruct: <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
		Name:     "qwen3_coder",
		Aliases:  []string{"qwen3_xml", "nemotron_nano", "mimo", "step3p5"},
		Families: "Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5",
		Markers:  []string{"<tool_call>", "</tool_call>"},
		taught:   []string{"<tool_call>", "<function=", "<parameter="},
		triggers: []trigger{
			{marker: "<tool_call>", opens: qwenSpec.outer},
			{marker: "<function=", opens: qwenSpec.inner},
		},
	},
	{
		// mistralai/Mistral-Nemo-Instruct-2407: [TOOL_CALLS][{...}]; Mistral-Small-3.2: [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{...};
		// Ministral-3: [TOOL_CALLS]NAME[ARGS]{...}
		Name:     "mistral",
		Families: "Mistral, Ministral, Magistral, Devstral",
		Markers:  []string{"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"},
		taught:   []string{"[TOOL_CALLS]"},
		triggers: []trigger{{marker: "[TOOL_CALLS]", opens: func(*Parser) machine { return mistral{} }}},
	},
	{
		// microsoft/Phi-4-mini-instruct with the template of vLLM's examples: functools[{...}]
		Name:     "phi4_mini_json",
		Aliases:  []string{"phi4"},
		Families: "Phi-4-mini",
		Markers:  []string{"<|tool_call|>", "<|/tool_call|>"},
		taught:   []string{"functools["},
		triggers: []trigger{list("functools"), list("<|tool_call|>", "<|/tool_call|>")},
	},
	{
		// ibm-granite/granite-3.3-2b-instruct: <|tool_call|>[{...}]
		Name:     "granite",
		Families: "Granite 3",
		Markers:  []string{"<|tool_call|>", "<tool_call>"},
		taught:   []string{"<|start_of_role|>", "<|tool_call|>"},
		triggers: []trigger{list("<|tool_call|>"), list("<tool_call>", "</tool_call>")},
	},
	{
		// ibm-granite/granite-20b-functioncalling: <function_call> {...}, one for each call
		Name:     "granite-20b-fc",
		Families: "Granite 20B Function Calling",
		Markers:  []string{"<function_call>"},
		taught:   []string{"<function_call>"},
		unlike:   []string{"</function_call>"},
		triggers: []trigger{list("<function_call>")},
	},
	{
		// tencent/Hunyuan-A13B-Instruct, ai21labs/AI21-Jamba-1.5-Mini, ServiceNow-AI/Apriel-1.5-15b-Thinker: <tool_calls>[{...}]</tool_calls>;
		// MiniMaxAI/MiniMax-M1-80k: the same with an object a line
		Name:     "hunyuan_a13b",
		Aliases:  []string{"jamba", "minimax"},
		Families: "Hunyuan A13B, Jamba 1.5 and 1.6, MiniMax M1, Apriel 1.5 and 1.6",
		Markers:  []string{"<tool_calls>", "</tool_calls>"},
		taught:   []string{"<tool_calls>"},
		triggers: []trigger{list("<tool_calls>", "</tool_calls>")},
	},
	{
		// internlm/internlm2_5-7b-chat: <|action_start|><|plugin|>{...}<|action_end|>
		Name:     "internlm",
		Families: "InternLM 2.5",
		Markers:  []string{"<|action_start|>", "<|plugin|>", "<|action_end|>"},
		taught:   []string{"<|plugin|>"},
		triggers: []trigger{
			list("<|action_start|><|plugin|>", "<|action_end|>"),
			list("<|action_start|> <|plugin|>", "<|action_end|>"),
		},
	},
	{
		// nvidia/Llama-3_3-Nemotron-Super-49B-v1_5, nvidia/NVIDIA-Nemotron-Nano-9B-v2: <TOOLCALL>[{...}]</TOOLCALL>
		Name:     "nemotron",
		Aliases:  []string{"nemotron_deci", "nemotron_json", "nemotron_nano_v2"},
		Families: "Llama Nemotron, Nemotron Nano 2",
		Markers:  []string{"<TOOLCALL>", "</TOOLCALL>"},
		taught:   []string{"<TOOLCALL>"},
		triggers: []trigger{list("<TOOLCALL>", "</TOOLCALL>")},
	},
	{
		// meituan-longcat/LongCat-Flash-Chat: <longcat_tool_call>{...}</longcat_tool_call>
		Name:     "longcat",
		Families: "LongCat Flash",
		Markers:  []string{"<longcat_tool_call>", "</longcat_tool_call>"},
		taught:   []string{"<longcat_tool_call>"},
		triggers: []trigger{list("<longcat_tool_call>", "</longcat_tool_call>")},
	},
	{
		// allenai/Olmo-3-7B-Instruct: <function_calls>, Python calls, one a line, </function_calls>
		Name:     "olmo3",
		Families: "Olmo 3",
		Markers:  []string{"<function_calls>", "</function_calls>"},
		taught:   []string{"<function_calls>"},
		triggers: []trigger{{marker: "<function_calls>", opens: func(*Parser) machine {
			return &pythonCalls{ends: []string{"</function_calls>"}, lines: true, state: wantName}
		}}},
	},
	{
		// google/gemma-4-31B-it: <|tool_call>call:NAME{KEY:<|"|>TEXT<|"|>,KEY:1}<tool_call|>
		Name:     "gemma4",
		Aliases:  []string{"gemma-4"},
		Families: "Gemma 4",
		Markers:  []string{"<|tool_call>", "<tool_call|>", `<|"|>`},
		taught:   []string{"<|tool_call>call:"},
		triggers: []trigger{gemmaCall("<|tool_call>", `<|"|>`, "<tool_call|>")},
	},
	{
		// google/functiongemma-270m-it: <start_function_call>call:NAME{KEY:<escape>TEXT<escape>}<end_function_call>
		Name:     "functiongemma",
		Families: "FunctionGemma",
		Markers:  []string{"<start_function_call>", "<end_function_call>", "<escape>"},
		taught:   []string{"<start_function_call>"},
		triggers: []trigger{gemmaCall("<start_function_call>", "<escape>", "<end_function_call>")},
	},
	{
		// CohereForAI/c4ai-command-r7b-12-2024: <|START_ACTION|>[{"tool_call_id": "0", "tool_name": ..., "parameters": {...}}]<|END_ACTION|>
		Name:     "cohere_command3",
		Aliases:  []string{"cohere_command4"},
		Families: "Command R7B, Command A",
		Markers:  []string{"<|START_ACTION|>", "<|END_ACTION|>"},
		taught:   []string{"<|START_ACTION|>"},
		triggers: []trigger{list("<|START_ACTION|>", "<|END_ACTION|>")},
	},
	{
		// LiquidAI/LFM2-8B-A1B: <|tool_call_start|>[NAME(KEY="VALUE")]<|tool_call_end|>
		Name:     "lfm2",
		Families: "LFM 2, 2.5",
		Markers:  []string{"<|tool_call_start|>", "<|tool_call_end|>"},
		taught:   []string{"List of tools: "},
		triggers: []trigger{pythonList("<|tool_call_start|>", "<|tool_call_end|>")},
	},
	{
		// NousResearch/Hermes-2-Pro-Llama-3-8B, Qwen/Qwen2.5-7B-Instruct: <tool_call>{"name": ..., "arguments": {...}}</tool_call>
		Name:     "hermes",
		Aliases:  []string{"qwen25", "qwen3_json", "granite4", "ernie45"},
		Families: "Hermes 2 Pro and 3, Qwen 2.5, Qwen 3, QwQ, Granite 4, ERNIE 4.5",
		Markers:  []string{"<tool_call>", "</tool_call>"},
		taught:   []string{"<tool_call>"},
		unlike:   []string{"minimax"},
		triggers: []trigger{list("<tool_call>", "</tool_call>")},
	},
	{
		// meta-llama/Llama-4-Scout-17B-16E-Instruct with the pythonic template of vLLM's examples
		Name:     "llama4_pythonic",
		Families: "Llama 4",
		Markers:  []string{"<|python_start|>", "<|python_end|>"},
		taught:   []string{"<|header_start|>", "func_name1("},
		triggers: []trigger{
			{marker: "[", first: true, opens: bareCalls},
			pythonList("<|python_start|>", "<|python_end|>"),
		},
	},
	{
		// meta-llama/Llama-3.2-3B-Instruct and Team-ACE/ToolACE-8B with templates of vLLM's examples: [NAME(KEY="VALUE")]
		Name:     "pythonic",
		Families: "Llama 3.2, ToolACE",
		taught:   []string{"func_name1("},
		triggers: []trigger{{marker: "[", first: true, opens: bareCalls}},
	},
	{
		// Salesforce/Llama-xLAM-2-8b-fc-r: [{"name": ..., "arguments": {...}}]
		Name:     "xlam",
		Families: "xLAM",
		Markers:  []string{"<tool_call>", "</tool_call>", "[TOOL_CALLS]"},
		taught:   []string{"tool_call_name", "arguments"},
		triggers: []trigger{
			{marker: "[", first: true, opens: bareObjects(false)},
			list("[TOOL_CALLS]"), list("<tool_call>", "</tool_call>"),
			{marker: "```json\n", opens: func(*Parser) machine { return &objects{ends: []string{"```"}, strict: true} }},
		},
	},
	{
		// meta-llama/Llama-3.1-8B-Instruct: {"name": ..., "parameters": {...}}
		Name:     "llama3_json",
		Aliases:  []string{"llama4_json"},
		Families: "Llama 3.1, 3.2, 3.3",
		Markers:  []string{"<|python_tag|>"},
		taught:   []string{`"parameters": dictionary of argument name and its value`},
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

var (
	harmonyMarkers = []string{"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"}

	deepseekMarkers = []string{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
		"<｜tool▁sep｜>"}
	deepseekTriggers = []trigger{
		{marker: "<｜tool▁calls▁begin｜>", opens: deepseekSpec.section},
		{marker: "<｜tool▁call▁begin｜>", opens: deepseekSpec.call},
	}
)

// list is a marker behind which there are JSON objects.
func list(marker string, ends ...string) trigger {
	return trigger{marker: marker, opens: func(*Parser) machine { return &objects{ends: ends} }}
}

// pythonList is a marker behind which there is a list of Python calls.
func pythonList(marker string, ends ...string) trigger {
	return trigger{marker: marker, opens: func(*Parser) machine { return &pythonCalls{ends: ends} }}
}

// bareObjects and bareCalls begin without a marker: the whole answer must be calls.
func bareObjects(semicolons bool) func(*Parser) machine {
	return func(p *Parser) machine {
		o := &objects{semicolons: semicolons, strict: true}
		o.open(p, p.held[0])
		return o
	}
}

func bareCalls(*Parser) machine { return &pythonCalls{strict: true, state: wantName} }
