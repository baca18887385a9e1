"""Clients of OpenAI and Anthropic that send one request after the other. Arguments: the URL, how many clients, how many seconds."""

import json
import sys
import threading
import time

import anthropic
import openai

try:
    import httpx2 as httpx
except ImportError:  # Older packages.
    import httpx

base, clients, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
HELLO = [{"role": "user", "content": "hello " * 20}]
counts = {"attempts": 0, "successes": 0, "failures": 0}
lock = threading.Lock()


def count(name):
    with lock:
        counts[name] += 1


def http_client():
    limits = httpx.Limits(max_connections=None)
    return httpx.Client(event_hooks={"request": [lambda request: count("attempts")]}, limits=limits, timeout=600)


open_ai = openai.OpenAI(base_url=f"{base}/v1", api_key="x", http_client=http_client())
claude = anthropic.Anthropic(base_url=base, api_key="x", http_client=http_client())
end = time.monotonic() + seconds


def work(number):
    tenant = {"x-tenant": f"tenant-{number % 8}"}
    while time.monotonic() < end:
        try:
            if number % 2:
                open_ai.chat.completions.create(model="m", messages=HELLO, max_tokens=64, extra_headers=tenant)
            else:
                claude.messages.create(model="m", messages=HELLO, max_tokens=64, extra_headers=tenant)
            count("successes")
        except (openai.APIError, anthropic.APIError):
            count("failures")


threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
counts["retries"] = counts["attempts"] - counts["successes"] - counts["failures"]
print(json.dumps(counts))
