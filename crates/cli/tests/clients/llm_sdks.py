"""The packages of OpenAI and Anthropic through a gateway with `preset: llm`. Arguments: its URL, and its access log."""

import json
import sys
import threading
import time
import urllib.request

import anthropic
import openai

try:
    import httpx2 as httpx
except ImportError:  # Older packages.
    import httpx

base, log_path = sys.argv[1:3]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
HELLO = [{"role": "user", "content": "hello " * 20}]


def open_ai(key="sk-ann", **options):
    return openai.OpenAI(base_url=f"{base}/v1", api_key=key, **options)


def claude(key="sk-ann", **options):
    return anthropic.Anthropic(base_url=base, api_key=key, **options)


def lines(**fields):
    """The lines of the access log that have all of these fields."""
    with open(log_path) as log:
        found = [json.loads(line) for line in log if line.endswith("\n")]
    return [line for line in found if all(line.get(name) == value for name, value in fields.items())]


def wait_for(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"{what}\n{lines()[-5:]}"
        time.sleep(0.02)


def logged(model, prompt, output, **fields):
    """Waits for a line of the access log with so many tokens."""
    def there():
        return [line for line in lines(model=model, **fields) if line.get("promptTokens") == prompt and line.get("outputTokens") == output]
    wait_for(there, f"no line for {model} with {prompt} and {output} tokens")
    return there()[-1]


def model_status():
    with urllib.request.urlopen(sys.argv[3] + "/status") as response:
        return json.load(response)


def chat():
    reply = open_ai().chat.completions.create(model="chat", messages=HELLO, max_tokens=12)
    assert reply.choices[0].message.content == "word " * 12 and reply.usage.completion_tokens == 12
    line = logged("chat", reply.usage.prompt_tokens, 12, user="ann")
    assert line["cost"] == reply.usage.total_tokens and line["level"] == "everyone", line


def chat_stream():
    stream = open_ai().chat.completions.create(
        model="stream", messages=HELLO, max_tokens=30, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "word " * 30 and chunks[-1].usage.completion_tokens == 30
    first = logged("stream", chunks[-1].usage.prompt_tokens, 30)
    # One without usage is counted by its events, with what the first has taught.
    def has_text(chunk):
        return chunk.choices and chunk.choices[0].delta.content
    events = sum(1 for chunk in chunks if has_text(chunk))
    stream = open_ai().chat.completions.create(model="stream", messages=HELLO, max_tokens=60, stream=True)
    seen = sum(1 for chunk in stream if has_text(chunk))
    def close_enough():
        return [line for line in lines(model="stream") if abs(line.get("outputTokens", 0) - 30 * seen / events) <= 1]
    wait_for(close_enough, f"no line with about {30 * seen / events} tokens")
    second = close_enough()[-1]
    assert abs(second["promptTokens"] - first["promptTokens"] * second["bytesIn"] / first["bytesIn"]) <= 1, (first, second)


def other_apis_of_openai():
    reply = open_ai().completions.create(model="text", prompt="x" * 40, max_tokens=7)
    assert reply.choices[0].text == "word " * 7
    logged("text", 10, 7)
    reply = open_ai().embeddings.create(model="vectors", input=["x" * 80], encoding_format="float")
    assert reply.data[0].embedding == [0.25, -0.5]
    logged("vectors", 20, 0)
    reply = open_ai().responses.create(model="responses", input="x" * 40, max_output_tokens=9)
    assert reply.output_text == "word " * 9 and reply.usage.output_tokens == 9
    logged("responses", 10, 9)
    events = list(open_ai().responses.create(model="responses-stream", input="x" * 40, max_output_tokens=8, stream=True))
    assert events[-1].type == "response.completed" and events[-1].response.usage.output_tokens == 8
    logged("responses-stream", 10, 8)


def tool_calls():
    reply = open_ai().chat.completions.create(model="tools", messages=HELLO, tools=TOOLS, max_tokens=5)
    assert reply.choices[0].message.tool_calls[0].function.name == "weather"
    stream = open_ai().chat.completions.create(model="tools", messages=HELLO, tools=TOOLS, max_tokens=5, stream=True)
    names = [call.function.name for chunk in stream if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
    assert names[0] == "weather"
    tools = [{"name": "weather", "input_schema": {"type": "object"}}]
    reply = claude().messages.create(model="claude-tools", messages=HELLO, tools=tools, max_tokens=5)
    assert reply.content[0].name == "weather" and reply.stop_reason == "tool_use"
    with claude().messages.stream(model="claude-tools", messages=HELLO, tools=tools, max_tokens=5) as stream:
        assert stream.get_final_message().content[0].input == {"city": "Oslo"}


def messages():
    reply = claude().messages.create(model="claude", messages=HELLO, max_tokens=11)
    assert reply.content[0].text == "word " * 11
    logged("claude", reply.usage.input_tokens, 11, user="ann")
    with claude().messages.stream(model="claude-stream", messages=HELLO, max_tokens=25) as stream:
        assert "".join(stream.text_stream) == "word " * 25
        usage = stream.get_final_message().usage
    logged("claude-stream", usage.input_tokens, 25)


def ollama():
    body = {"model": "llama", "messages": HELLO, "options": {"num_predict": 13}}
    with httpx.stream("POST", f"{base}/api/chat", json=body, headers={"Authorization": "Bearer sk-ann"}, timeout=60) as reply:
        last = json.loads(list(reply.iter_lines())[-1])
    assert last["done"] and last["eval_count"] == 13
    logged("llama", last["prompt_eval_count"], 13)
    reply = httpx.post(f"{base}/api/generate", json={"model": "llama"}, headers={"Authorization": "Bearer nobody"})
    assert reply.status_code == 401 and isinstance(reply.json()["error"], str), reply.text


def errors():
    try:
        open_ai(key="wrong").chat.completions.create(model="m", messages=HELLO)
        raise AssertionError("a wrong key is accepted")
    except openai.AuthenticationError as error:
        assert error.code == "invalid_api_key", error.body
    try:
        claude(key="wrong").messages.create(model="m", messages=HELLO, max_tokens=1)
        raise AssertionError("a wrong key is accepted")
    except anthropic.AuthenticationError as error:
        assert error.body["error"]["type"] == "authentication_error", error.body
    try:
        open_ai(max_retries=0).chat.completions.create(model="failing", messages=HELLO)
        raise AssertionError("it does not fail")
    except openai.InternalServerError as error:
        assert "as its name says" in error.message
    # The packages try again by themselves.
    reply = open_ai(max_retries=2).chat.completions.create(model="flaky", messages=HELLO, max_tokens=3)
    assert reply.usage.completion_tokens == 3
    reply = claude(max_retries=2).messages.create(model="flaky", messages=HELLO, max_tokens=3)
    assert reply.usage.output_tokens == 3
    # A stream that its server cuts off is an error for its client, too.
    try:
        list(open_ai(max_retries=0).chat.completions.create(model="cut-off", messages=HELLO, max_tokens=40, stream=True))
        raise AssertionError("the stream has an end")
    except (openai.APIError, httpx.HTTPError):
        pass


def rejections():
    """`small` has two seats and a queue of two: more are told when to come back, and come back."""
    seen = []
    def note(response):
        if response.status_code == 429:
            seen.append((dict(response.headers), json.loads(response.read())))
    def call(results, client):
        reply = client.chat.completions.create(model="crowd", messages=HELLO, max_tokens=25)
        results.append(reply.usage.completion_tokens)
    results = []
    client = open_ai(key="sk-small", max_retries=40, http_client=httpx.Client(event_hooks={"response": [note]}, timeout=60))
    threads = [threading.Thread(target=call, args=(results, client)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [25] * 12, results
    assert seen, "nobody was rejected"
    for headers, body in seen:
        assert 100 <= int(headers["retry-after-ms"]) <= 60_000 and 1 <= int(headers["retry-after"]) <= 60, headers
        assert body["error"]["code"] == "rate_limit_exceeded", body
    try:
        claude(key="sk-blocked", max_retries=0).messages.create(model="m", messages=HELLO, max_tokens=1)
        raise AssertionError("it is not blocked")
    except anthropic.RateLimitError as error:
        assert error.body["error"]["type"] == "rate_limit_error", error.body


def no_retries():
    """`hourly` may send one request an hour. Its package is told not to come back within a minute, and does not."""
    seen = []
    http_client = httpx.Client(event_hooks={"response": [seen.append]}, timeout=60)
    client = open_ai(key="sk-hourly", max_retries=5, http_client=http_client)
    client.chat.completions.create(model="hourly", messages=HELLO, max_tokens=2)
    try:
        client.chat.completions.create(model="hourly", messages=HELLO, max_tokens=2)
        raise AssertionError("it is above its rate")
    except openai.RateLimitError:
        pass
    assert [response.status_code for response in seen] == [200, 429], seen
    assert seen[1].headers["x-should-retry"] == "false", seen[1].headers


def cached_tokens_and_usage_in_each_chunk():
    reply = open_ai().chat.completions.create(model="cached", messages=HELLO, max_tokens=4)
    line = logged("cached", reply.usage.prompt_tokens, 4)
    assert line["cachedTokens"] == reply.usage.prompt_tokens_details.cached_tokens > 0, line
    assert line["cost"] < reply.usage.total_tokens, line
    stream = open_ai().chat.completions.create(
        model="each-chunk", messages=HELLO, max_tokens=20, stream=True,
        stream_options={"include_usage": True}, extra_body={"stream_options": {"include_usage": True, "continuous_usage_stats": True}})
    usages = [chunk.usage.completion_tokens for chunk in stream if chunk.usage]
    assert len(usages) > 2 and usages == sorted(usages) and usages[-1] == 20, usages
    logged("each-chunk", reply.usage.prompt_tokens, 20)


def disconnects():
    """A client that leaves ends the generation, and gives its seat back."""
    before = model_status()["leftEarly"]
    for _ in range(5):
        stream = open_ai().chat.completions.create(model="long", messages=HELLO, max_tokens=3000, stream=True)
        next(iter(stream))
        stream.close()
    wait_for(lambda: model_status()["leftEarly"] == before + 5 and model_status()["running"] == 0, "the server goes on")
    wait_for(lambda: len(lines(model="long")) == 5, "requests do not end")
    for line in lines(model="long"):
        assert 0 < line["outputTokens"] < 3000 and line["promptTokens"] > 0, line


def models():
    """The model of a request says where it goes."""
    open_ai().chat.completions.create(model="big", messages=HELLO, max_tokens=2)
    wait_for(lambda: lines(model="big"), "no line")
    assert lines(model="big")[-1]["level"] == "slow", lines(model="big")


for test in [chat, chat_stream, other_apis_of_openai, tool_calls, messages, ollama, errors, rejections, no_retries,
             cached_tokens_and_usage_in_each_chunk, disconnects, models]:
    test()
    print(test.__name__)
