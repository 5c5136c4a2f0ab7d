"""Asks with OpenAI's agents SDK (openai-agents), on the chat completions API."""

import asyncio

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from common import MODEL, Report, run
from openai import AsyncOpenAI

set_tracing_disabled(True)


def agent(url, **more):
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=60)
    return Agent(
        name="test",
        model=OpenAIChatCompletionsModel(MODEL, client),
        model_settings=ModelSettings(temperature=0, max_tokens=400, include_usage=True),
        **more,
    )


async def streamed(url, question, **more):
    result = Runner.run_streamed(agent(url, **more), question)
    deltas = ""
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            deltas += event.data.delta
    return result, deltas


async def text(url, question):
    result, deltas = await streamed(url, question)
    return {
        "text": result.final_output,
        "deltas": deltas,
        "role": result.new_items[-1].raw_item.role,
        "tokens": result.context_wrapper.usage.output_tokens,
    }


async def whole(url, question):
    result = await Runner.run(agent(url), question)
    return {
        "text": result.final_output,
        "role": result.new_items[-1].raw_item.role,
        "tokens": result.context_wrapper.usage.output_tokens,
    }


async def schema(url, question):
    result = await Runner.run(agent(url, output_type=Report), question)
    return {"parsed": result.final_output.model_dump()}


async def schema_streamed(url, question):
    result, _ = await streamed(url, question, output_type=Report)
    return {"parsed": result.final_output.model_dump()}


run(
    {
        "text": text,
        "whole": whole,
        "schema": schema,
        "schema_streamed": schema_streamed,
    },
    asyncio.new_event_loop(),
)
