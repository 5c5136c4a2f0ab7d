"""Asks with LangChain (langchain-openai)."""

from common import MODEL, Report, run
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI


def model(url, **more):
    params = dict(temperature=0, max_completion_tokens=400, stream_usage=True, use_responses_api=False) | more
    return ChatOpenAI(model=MODEL, base_url=url, api_key="none", max_retries=0, timeout=60, **params)


def joined(chunks):
    message = None
    for chunk in chunks:
        message = chunk if message is None else message + chunk
    return message


def text_of(message):
    return {
        "text": message.text,
        "finish": message.response_metadata["finish_reason"],
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
