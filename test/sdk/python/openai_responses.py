"""The cases of openai-python on the Responses API."""

import json

from common import MODEL, TOOLS, Report, by_name, calls_of, result_of
from openai import NotFoundError, OpenAI, pydantic_function_tool


def client(url):
    return OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60, _strict_response_validation=True)


def ask(question, **more):
    return dict(model=MODEL, input=question, temperature=0, max_output_tokens=400, **more)


def streamed(url, params):
    deltas = ""
    with client(url).responses.stream(**params) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                deltas += event.delta
        return stream.get_final_response(), deltas


def text_of(response):
    return {
        "text": response.output_text,
        "role": [item.role for item in response.output if item.type == "message"][-1],
        "status": response.status,
        "tokens": response.usage.output_tokens,
    }


def text(url, question):
    response, deltas = streamed(url, ask(question))
    return text_of(response) | {"deltas": deltas}


def whole(url, question):
    return text_of(client(url).responses.create(**ask(question)))


def logprobs(url, question):
    response, _ = streamed(
        url, ask(question, include=["message.output_text.logprobs"], top_logprobs=2)
    )
    logprobs = response.output[-1].content[0].logprobs
    return {
        "text": response.output_text,
        "tokens": [t.token for t in logprobs],
        "bytes": [t.bytes for t in logprobs],
        "logprobs": [t.logprob for t in logprobs],
        "tops": [[[top.token, top.logprob] for top in t.top_logprobs] for t in logprobs],
    }


def schema(url, question):
    response = client(url).responses.parse(**ask(question), text_format=Report)
    return {"parsed": response.output_parsed.model_dump(), "status": response.status}


def schema_streamed(url, question):
    response, _ = streamed(url, ask(question, text_format=Report))
    return {"parsed": response.output_parsed.model_dump(), "status": response.status}


def reasoning(url, question):
    response, deltas = streamed(url, ask(question))
    thoughts = [item for item in response.output if item.type == "reasoning"]
    counted = response.usage.output_tokens_details.reasoning_tokens
    return text_of(response) | {
        "deltas": deltas,
        "reasoning": "".join(part.text for thought in thoughts for part in thought.content),
        "counted": 0 < counted < response.usage.output_tokens,
    }


def with_tools(question, **more):
    functions = [pydantic_function_tool(model, name=name)["function"] for name, model in TOOLS.items()]
    return ask(question, tools=[{"type": "function", **function} for function in functions], **more)


def called(response):
    calls = [
        (item.call_id, item.name, json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]
    return calls_of(calls, text=response.output_text, status=response.status)


def tools(url, question):
    return called(streamed(url, with_tools(question))[0])


def required(url, question):
    return called(client(url).responses.create(**with_tools(question, tool_choice="required")))


def required_streamed(url, question):
    return called(streamed(url, with_tools(question, tool_choice="required"))[0])


NAMED = {"tool_choice": {"type": "function", "name": "get_time"}, "parallel_tool_calls": False}


def named(url, question):
    return called(client(url).responses.create(**with_tools(question, **NAMED)))


def outputs_of(response):
    """The outputs of the functions that a response calls, as items of the next input."""
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": result_of(item.name, json.loads(item.arguments)),
        }
        for item in response.output
        if item.type == "function_call"
    ]


def loop(url, question):
    params = with_tools(question)
    first, _ = streamed(url, params)
    params["input"] = [{"role": "user", "content": question}] + first.output + outputs_of(first)
    return called(first) | text_of(streamed(url, params)[0]) | {"requests": 2}


def loop_stored(url, question):
    """The second request refers to the first response, which is looked at, and deleted in the end."""
    first, _ = streamed(url, with_tools(question))
    outputs = outputs_of(first)
    last, _ = streamed(url, with_tools(outputs, previous_response_id=first.id))
    kept = client(url).responses
    assert [item.id for item in kept.retrieve(first.id).output] == [item.id for item in first.output]
    said = kept.input_items.list(last.id, order="asc", limit=2)  # asks for the next pages by itself
    expected = ["message"] + [item.type for item in first.output] + ["function_call_output"] * len(outputs)
    assert [item.type for item in said] == expected
    kept.delete(first.id)
    try:
        kept.retrieve(first.id)
    except NotFoundError:
        return called(first) | text_of(last) | {"requests": 2}
    raise AssertionError("a deleted response is there")


responses = by_name(
    text, whole, logprobs, schema, schema_streamed, reasoning, tools, required, required_streamed, named, loop,
    loop_stored,
)
