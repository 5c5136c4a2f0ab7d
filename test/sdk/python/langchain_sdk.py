"""Asks with LangChain (langchain-openai)."""

from common import MODEL, TOOLS, Report, by_name, calls_of, result_of, run
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI


responses = False  # which API the cases use


def model(url, **more):
    params = dict(temperature=0, max_completion_tokens=400, stream_usage=True, use_responses_api=responses) | more
    return ChatOpenAI(model=MODEL, base_url=url, api_key="none", max_retries=0, timeout=60, **params)


def joined(chunks):
    message = None
    for chunk in chunks:
        message = chunk if message is None else message + chunk
    return message


def end_of(message):
    key = "status" if responses else "finish"
    return {key: message.response_metadata["status" if responses else "finish_reason"]}


def text_of(message):
    return {
        "text": message.text,
        **end_of(message),
        "tokens": message.usage_metadata["output_tokens"],
        "role": {"ai": "assistant", "AIMessageChunk": "assistant"}[message.type],
    }


def text(url, question):
    return text_of(joined(model(url).stream(question)))


def whole(url, question):
    return text_of(model(url).invoke(question))


def choices(url, question):
    result = model(url, n=2, temperature=1, seed=7).generate([[HumanMessage(question)]])
    return {
        "texts": [g.text for g in result.generations[0]],
        "finishes": [g.generation_info["finish_reason"] for g in result.generations[0]],
        "tokens": result.llm_output["token_usage"]["completion_tokens"],
    }


def logprobs(url, question):
    message = joined(model(url, logprobs=True, top_logprobs=2).stream(question))
    content = message.response_metadata["logprobs"]["content"]
    return {
        "text": message.text,
        "tokens": [t["token"] for t in content],
        "bytes": [t["bytes"] for t in content],
        "logprobs": [t["logprob"] for t in content],
        "tops": [[[top["token"], top["logprob"]] for top in t["top_logprobs"]] for t in content],
    }


def structured(url):
    return model(url).with_structured_output(Report, method="json_schema", strict=True)


def schema(url, question):
    return {"parsed": structured(url).invoke(question).model_dump()}


def schema_streamed(url, question):
    *_, last = structured(url).stream(question)
    return {"parsed": last.model_dump()}


def reasoning(url, question):
    message = joined(model(url, reasoning={"summary": "auto"}).stream(question))  # it shows nothing else
    counted = message.usage_metadata["output_token_details"]["reasoning"]
    thoughts = [block["reasoning"] for block in message.content_blocks if block["type"] == "reasoning"]
    return text_of(message) | {
        "reasoning": "".join(thoughts),
        "counted": 0 < counted < message.usage_metadata["output_tokens"],
    }


def bound(url, settings={}, **more):
    tools = [
        StructuredTool(name=name, description=name, args_schema=schema, func=lambda name=name, **args: result_of(name, args))
        for name, schema in TOOLS.items()
    ]
    return model(url, **settings).bind_tools(tools, strict=True, **more), {tool.name: tool for tool in tools}


def called(message):
    assert not message.invalid_tool_calls, message.invalid_tool_calls
    calls = [(c["id"], c["name"], c["args"]) for c in message.tool_calls]
    return calls_of(calls, text=message.text, **end_of(message))


def tools(url, question):
    return called(joined(bound(url)[0].stream(question)))


def required(url, question):
    return called(bound(url, tool_choice="any")[0].invoke(question))


def required_streamed(url, question):
    return called(joined(bound(url, tool_choice="any")[0].stream(question)))


def named(url, question):
    return called(bound(url, tool_choice="get_time", parallel_tool_calls=False)[0].invoke(question))


def loop_stored(url, question):
    return loop(url, question, {"use_previous_response_id": True})


def loop(url, question, settings={}):
    llm, tools = bound(url, settings)
    messages = [HumanMessage(question)]
    first = joined(llm.stream(messages))
    messages += [first] + [tools[call["name"]].invoke(call) for call in first.tool_calls]
    assert all(isinstance(m, ToolMessage) for m in messages[2:])
    return called(first) | text_of(joined(llm.stream(messages))) | {"requests": 2}


cases = by_name(
    text, whole, choices, logprobs, schema, schema_streamed, reasoning, tools, required, required_streamed, named,
    loop, loop_stored,
)


def on_responses(case):
    def run_case(url, question):
        global responses
        responses = True
        try:
            return case(url, question)
        finally:
            responses = False

    return run_case


run(cases | {name + ".responses": on_responses(case) for name, case in cases.items()})
