"""Streams a message through the gateway with the package of Anthropic (`pip install anthropic`).

    ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=sk-ann python anthropic_messages.py
"""

import sys

import anthropic

# The package tries again by itself, when the gateway says so; waiting for minutes is better than failing.
client = anthropic.Anthropic(max_retries=5, timeout=600)

with client.messages.stream(
    model="sample", max_tokens=8, messages=[{"role": "user", "content": "Say hello."}]
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
    usage = stream.get_final_message().usage
print(f"\n{usage.output_tokens} tokens", file=sys.stderr)
