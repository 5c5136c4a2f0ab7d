"""Asks with openai-python. Its stream helper, which rebuilds a whole message from the chunks, is its strictest reader."""

import json

from common import TOOLS, Report, ask, by_name, calls_of, result_of, run
from openai import pydantic_function_tool
from openai_responses import client, responses


def streamed(url, params):
    with client(url).chat.completions.stream(**params, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def text(url, question):
    return text_of(streamed(url, ask(question)))


def whole(url, question):
    return text_of(client(url).chat.completions.create(**ask(question)))


def text_of(completion):
    choice = completion.choices[0]
    return {
        "text": choice.message.content,
        "role": choice.message.role,
        "finish": choice.finish_reason,
        "tokens": completion.usage.completion_tokens,
    }


def choices(url, question):
    completion = streamed(url, ask(question) | {"n": 2, "temperature": 1, "seed": 7})
    return {
        "texts": [c.message.content for c in completion.choices],
        "finishes": [c.finish_reason for c in completion.choices],
        "tokens": completion.usage.completion_tokens,
    }


def logprobs(url, question):
    choice = streamed(url, ask(question, logprobs=True, top_logprobs=2)).choices[0]
    return {
        "text": choice.message.content,
        "tokens": [t.token for t in choice.logprobs.content],
        "bytes": [t.bytes for t in choice.logprobs.content],
        "logprobs": [t.logprob for t in choice.logprobs.content],
        "tops": [[[top.token, top.logprob] for top in t.top_logprobs] for t in choice.logprobs.content],
    }


def schema(url, question):
    choice = client(url).chat.completions.parse(**ask(question), response_format=Report).choices[0]
    return {"parsed": choice.message.parsed.model_dump(), "finish": choice.finish_reason}


def schema_streamed(url, question):
    choice = streamed(url, ask(question, response_format=Report)).choices[0]
    return {"parsed": choice.message.parsed.model_dump(), "finish": choice.finish_reason}


def reasoning(url, question):
    completion = streamed(url, ask(question))
    counted = completion.usage.completion_tokens_details.reasoning_tokens
    return text_of(completion) | {
        "reasoning": completion.choices[0].message.reasoning_content,
        "counted": 0 < counted < completion.usage.completion_tokens,
    }


def with_tools(question, **more):
    # Strict tools: the helper parses their arguments into the models.
    return ask(question, tools=[pydantic_function_tool(model, name=name) for name, model in TOOLS.items()], **more)


def called(completion):
    choice = completion.choices[0]
    calls = [
        (c.id, c.function.name, c.function.parsed_arguments.model_dump()) for c in choice.message.tool_calls or []
    ]
    return calls_of(calls, text=choice.message.content, finish=choice.finish_reason)


def tools(url, question):
    return called(streamed(url, with_tools(question)))


def required(url, question):
    return called(client(url).chat.completions.parse(**with_tools(question, tool_choice="required")))


def required_streamed(url, question):
    return called(streamed(url, with_tools(question, tool_choice="required")))


NAMED = {"type": "function", "function": {"name": "get_time"}}


def named(url, question):
    return called(
        client(url).chat.completions.parse(**with_tools(question, tool_choice=NAMED, parallel_tool_calls=False))
    )


def loop(url, question):
    params = with_tools(question)
    first = streamed(url, params)
    message = first.choices[0].message
    params["messages"] += [message.model_dump(exclude_none=True)] + [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": result_of(call.function.name, json.loads(call.function.arguments)),
        }
        for call in message.tool_calls
    ]
    return called(first) | text_of(streamed(url, params)) | {"requests": 2}


chat = by_name(
    text, whole, choices, logprobs, schema, schema_streamed, reasoning, tools,
    required, required_streamed, named, loop,
)
run(chat | {name + ".responses": case for name, case in responses.items()})
