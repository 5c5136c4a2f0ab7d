"""Asks the frontend at $BASE_URL with openai-python, streamed and not, and prints what the SDK made of it as one JSON object."""

import json
import os

from openai import OpenAI

client = OpenAI(base_url=os.environ["BASE_URL"] + "/v1", api_key="none", max_retries=0, timeout=60)
ask = dict(
    model=os.environ["MODEL"],
    messages=[{"role": "user", "content": os.environ["QUESTION"]}],
    temperature=0,
    max_completion_tokens=400,
)

# The helper that rebuilds a whole message from the chunks is the strictest reader of this SDK.
with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
    for _ in stream:
        pass
    streamed = stream.get_final_completion()

whole = client.chat.completions.create(**ask)
print(
    json.dumps(
        {
            "streamed": streamed.choices[0].message.content,
            "streamed_finish": streamed.choices[0].finish_reason,
            "streamed_tokens": streamed.usage.completion_tokens,
            "role": streamed.choices[0].message.role,
            "whole": whole.choices[0].message.content,
            "whole_finish": whole.choices[0].finish_reason,
            "whole_tokens": whole.usage.completion_tokens,
        }
    )
)
