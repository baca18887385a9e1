"""Streams a response through the gateway with the package of OpenAI (`pip install openai`).

    OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=sk-ann python openai_chat.py
"""

import sys

import openai

# The package tries again by itself, when the gateway says so; waiting for minutes is better than failing.
client = openai.OpenAI(max_retries=5, timeout=600)

stream = client.chat.completions.create(
    model="sample",
    messages=[{"role": "user", "content": "Say hello."}],
    max_tokens=8,
    stream=True,
    # The usage at the end tells the gateway how many tokens an event has.
    stream_options={"include_usage": True},
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    if chunk.usage:
        print(f"\n{chunk.usage.completion_tokens} tokens", file=sys.stderr)
