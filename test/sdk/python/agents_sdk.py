"""Asks with OpenAI's agents SDK (openai-agents), on the Responses API, its default, and on the chat completions API."""

import asyncio
import json

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    set_tracing_disabled,
)
from common import MODEL, TOOLS, Report, by_name, calls_of, result_of, run
from openai import AsyncOpenAI

set_tracing_disabled(True)


api = OpenAIChatCompletionsModel  # which API the cases use


def agent(url, settings={}, **more):
    client = AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, timeout=60, _strict_response_validation=True
    )
    return Agent(
        name="test",
        model=api(MODEL, openai_client=client),
        model_settings=ModelSettings(temperature=0, max_tokens=400, include_usage=True, **settings),
        **more,
    )


def tool(name, schema):
    async def answer(_, arguments):
        return result_of(name, schema.model_validate_json(arguments).model_dump())

    return FunctionTool(name, name, schema.model_json_schema(), answer)


tools = [tool(name, schema) for name, schema in TOOLS.items()]


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


def called(result):
    calls = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
    return calls_of(
        [(c.call_id, c.name, json.loads(c.arguments)) for c in calls],
        text=result.final_output,
        requests=result.context_wrapper.usage.requests,
    )


async def reasoning(url, question):
    result, deltas = await streamed(url, question)
    thoughts = [item.raw_item for item in result.new_items if item.type == "reasoning_item"]
    usage = result.context_wrapper.usage
    return {
        "text": result.final_output,
        "deltas": deltas,
        "reasoning": "".join(part.text for thought in thoughts for part in thought.content or thought.summary),
        "tokens": usage.output_tokens,
        "counted": 0 < usage.output_tokens_details.reasoning_tokens < usage.output_tokens,
    }


async def loop(url, question):
    result, _ = await streamed(url, question, tools=tools)
    return called(result)


async def loop_stored(url, question):
    return called(await Runner.run(agent(url, tools=tools), question, auto_previous_response_id=True))


def chosen(choice, parallel=None):
    return {"tools": tools, "settings": {"tool_choice": choice, "parallel_tool_calls": parallel}}


async def required(url, question):
    return called(await Runner.run(agent(url, **chosen("required")), question))


async def named(url, question):
    return called(await Runner.run(agent(url, **chosen("get_time", False)), question))


async def schema_or_tools(url, question):
    result = await Runner.run(agent(url, tools=tools, output_type=Report), question)
    return called(result) | {"text": None, "parsed": result.final_output.model_dump()}


cases = by_name(
    text, whole, schema, schema_streamed, reasoning, required, named, loop, loop_stored, schema_or_tools,
)


def on_responses(case):
    async def run_case(url, question):
        global api
        api = OpenAIResponsesModel
        try:
            return await case(url, question)
        finally:
            api = OpenAIChatCompletionsModel

    return run_case


responses = {name + ".responses": on_responses(case) for name, case in cases.items()}
run(cases | responses, asyncio.new_event_loop())
