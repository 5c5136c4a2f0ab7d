"""What the programs of this folder share: they read what to ask from $JOB and print what their SDK made of it."""

import inspect
import json
import os
import traceback
from typing import Literal

from pydantic import BaseModel, ConfigDict

job = json.loads(os.environ["JOB"])
MODEL = job["model"]


class Report(BaseModel):
    """What the structured cases ask for."""

    model_config = ConfigDict(extra="forbid")
    title: str
    weather: Literal["calm", "storm"]
    depths: list[int]


class GetWeather(BaseModel):
    """The arguments of the tool get_weather."""

    model_config = ConfigDict(extra="forbid")
    city: str
    days: int


class GetTime(BaseModel):
    """The arguments of the tool get_time."""

    model_config = ConfigDict(extra="forbid")
    zones: list[str]


TOOLS = {"get_weather": GetWeather, "get_time": GetTime}


def result_of(name: str, arguments: dict) -> str:
    """What the tools answer: all that the model asked, so that its next answer follows from it."""
    return json.dumps([name, arguments], sort_keys=True)


def calls_of(calls: list[tuple[str, str, dict]], **more) -> dict:
    """The answer of a case with calls, given as id, name and arguments."""
    return {
        "calls": [{"name": name, "arguments": arguments} for _, name, arguments in calls],
        "ids": len({id for id, _, _ in calls if id}),
        **more,
    }


def ask(question: str, **more) -> dict:
    """The request of every case, for SDKs that take the API's own parameters."""
    return dict(
        model=MODEL, messages=[{"role": "user", "content": question}], temperature=0, max_completion_tokens=400, **more
    )


def by_name(*cases) -> dict:
    """Cases by the names of their functions, which are those of the job."""
    return {case.__name__: case for case in cases}


def run(cases: dict, loop=None) -> None:
    """Prints a list with an object for each target of the job: what each of its cases returned, or its error.

    A case takes the URL of the API and the question. Those that are coroutines run in loop.
    """
    out = []
    for target in job["targets"]:
        answers = {}
        for name, case in target["cases"].items():
            try:
                answer = cases[case["ask"]](target["url"] + "/v1", case["question"])
                answers[name] = loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer
            except Exception:
                answers[name] = {"error": traceback.format_exc(limit=-6)}
        out.append(answers)
    print(json.dumps(out))
