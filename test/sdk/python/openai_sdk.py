"""Asks with openai-python. Its stream helper, which rebuilds a whole message from the chunks, is its strictest reader."""

from common import Report, ask, run
from openai import OpenAI


def client(url):
    return OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60)


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


run(
    {
        "text": text,
        "whole": whole,
        "choices": choices,
        "logprobs": logprobs,
        "schema": schema,
        "schema_streamed": schema_streamed,
    }
)
