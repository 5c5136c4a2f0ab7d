package parser

// The formats of reasoning, in the order in which a template is asked for them.
var reasoningFormats = []*Format{
	{
		// openai/gpt-oss-120b: <|channel|>analysis<|message|>...<|end|>
		Name:     "openai_gptoss",
		Aliases:  []string{"gpt_oss", "gptoss", "gpt-oss", "openai", "harmony"},
		Families: "gpt-oss",
		Markers:  harmonyMarkers,
		taught:   []string{"<|channel|>", "<|start|>"},
		harmony:  true,
	},
	{
		// mistralai/Ministral-3-14B-Reasoning-2512: [THINK]...[/THINK]
		Name:     "mistral",
		Families: "Magistral, Ministral 3",
		Markers:  []string{"[THINK]", "[/THINK]"},
		taught:   []string{"[THINK]"},
		opens:    []string{"[THINK]"},
		closes:   []string{"[/THINK]"},
	},
	{
		// moonshotai/Kimi-VL-A3B-Thinking
		Name:     "kimi",
		Families: "Kimi-VL Thinking",
		Markers:  []string{"◁think▷", "◁/think▷"},
		taught:   []string{"◁think▷"},
		opens:    []string{"◁think▷"},
		closes:   []string{"◁/think▷"},
	},
	{
		// ibm-granite/granite-3.2-8b-instruct
		Name:     "granite",
		Families: "Granite 3.2",
		taught:   []string{"Here is my thought process:"},
		opens:    []string{"Here is my thought process:", "Here's my thought process:"},
		closes:   []string{"Here is my response:", "Here's my response:"},
	},
	{
		// ByteDance-Seed/Seed-OSS-36B-Instruct
		Name:     "seed_oss",
		Families: "Seed OSS",
		Markers:  []string{"<seed:think>", "</seed:think>"},
		taught:   []string{"seed:think"},
		opens:    []string{"<seed:think>"},
		closes:   []string{"</seed:think>"},
	},
	{
		// google/gemma-4-31B-it: <|channel>thought, a line's end, ...<channel|>
		Name:       "gemma4",
		Aliases:    []string{"gemma-4"},
		Families:   "Gemma 4",
		Markers:    []string{"<|channel>", "<channel|>"},
		taught:     []string{"<|channel>thought"},
		opens:      []string{"<|channel>thought"},
		opensToken: "<|channel>",
		closes:     []string{"<channel|>"},
	},
	{
		// CohereForAI/c4ai-command-r7b-12-2024: <|START_THINKING|>...<|END_THINKING|><|START_RESPONSE|>...<|END_RESPONSE|>
		Name:     "cohere_command3",
		Aliases:  []string{"cohere_command4"},
		Families: "Command R7B, Command A Reasoning",
		Markers: []string{"<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>",
			"<|START_TEXT|>", "<|END_TEXT|>"},
		taught: []string{"<|START_THINKING|>"},
		opens:  []string{"<|START_THINKING|>"},
		closes: []string{"<|END_THINKING|>"},
		wraps:  [][2]string{{"<|START_RESPONSE|>", "<|END_RESPONSE|>"}, {"<|START_TEXT|>", "<|END_TEXT|>"}},
	},
	{
		// tencent/Hunyuan-A13B-Instruct: <think>...</think><answer>...</answer>
		Name:     "hunyuan_a13b",
		Families: "Hunyuan A13B",
		Markers:  thinkMarkers,
		taught:   []string{"<think>", "<answer>"},
		opens:    thinkMarkers[:1],
		closes:   thinkMarkers[1:],
		wraps:    [][2]string{{"<answer>", "</answer>"}},
	},
	{
		// baidu/ERNIE-4.5-21B-A3B-Thinking, ibm-granite/granite-3.3-2b-instruct: <think>...</think><response>...</response>
		Name:     "ernie45",
		Families: "ERNIE 4.5 Thinking, Granite 3.3",
		Markers:  append(thinkMarkers[:2:2], "<response>", "</response>"),
		taught:   []string{"</think>", "<response>"},
		unlike:   []string{"minimax"},
		opens:    thinkMarkers[:1],
		closes:   thinkMarkers[1:],
		wraps:    [][2]string{{"<response>", "</response>"}},
	},
	{
		// deepseek-ai/DeepSeek-R1: the first templates do not open what the model closes
		Name:     "deepseek_r1",
		Aliases:  []string{"nemotron_v3"},
		Families: "DeepSeek R1 and its distillations",
		Markers:  thinkMarkers,
		taught:   []string{"<｜Assistant｜>", "</think>"},
		unlike:   []string{"thinking"},
		opens:    thinkMarkers[:1],
		closes:   thinkMarkers[1:],
		unopened: true,
	},
	{
		Name:     "step3",
		Families: "Step 3",
		Markers:  thinkMarkers,
		opens:    thinkMarkers[:1],
		closes:   thinkMarkers[1:],
		unopened: true,
	},
	{
		// Qwen/Qwen3-0.6B, Qwen/QwQ-32B, zai-org/GLM-4.6, MiniMaxAI/MiniMax-M2 and many others: <think>...</think>,
		// where the template opens it if the model does not.
		Name: "qwen3",
		Aliases: []string{"basic", "glm45", "glm47", "deepseek_v3", "deepseek_v3_1", "deepseek_v3_2", "deepseek_v4",
			"kimi_k2", "kimi_k25", "nemotron_deci", "nemotron_nano", "minimax_m2", "olmo3", "step3p5", "holo2", "mimo"},
		Families: "Qwen 3, QwQ, GLM 4.5 and later, Kimi K2 Thinking, DeepSeek V3.1 and later, MiniMax M2, Olmo 3, Nemotron",
		Markers:  thinkMarkers,
		taught:   []string{"</think>"},
		opens:    thinkMarkers[:1],
		closes:   thinkMarkers[1:],
	},
}

var thinkMarkers = []string{"<think>", "</think>"}
