"""Plays what it is told on stdin to the official packages: with claude-agent-sdk, and to the types of anthropic.

One job a line: {"name", "base_url", "folder", "max_turns", "output_schema", "max_budget_usd", "model"} for the SDK, or {"name", "base_url",
"requests"} for the types. One result a line, as they end.
"""

import asyncio
import dataclasses
import json
import os
import pathlib
import sys
import urllib.request

from anthropic.types import Message, RawMessageStreamEvent
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, TextBlock, query
from pydantic import TypeAdapter

TOOLS = ["TodoWrite", "Read", "Grep", "Glob"]


async def ask(job):
    folder = pathlib.Path(job["folder"])
    home = folder.parent / f"{folder.name}-home"
    home.mkdir()
    env = {
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": job["base_url"],
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # Without it the CLI has other tools in place of TodoWrite.
        "CLAUDE_CODE_ENABLE_TASKS": "0",
    }
    schema = job.get("output_schema")
    options = ClaudeAgentOptions(
        cli_path=os.environ["CLAUDE"],
        env=env,
        cwd=folder,
        tools=TOOLS,
        allowed_tools=TOOLS,
        max_turns=job["max_turns"],
        max_budget_usd=job.get("max_budget_usd"),
        model=job.get("model"),
        setting_sources=[],
        output_format={"type": "json_schema", "schema": schema} if schema else None,
    )
    texts, result = [], None
    try:
        async for message in query(prompt="Do it", options=options):
            if isinstance(message, AssistantMessage):
                texts += [block.text for block in message.content if isinstance(block, TextBlock)]
            if isinstance(message, ResultMessage):
                result = dataclasses.asdict(message)
    except Exception as error:
        # After a result that is an error it raises as well.
        if result is None:
            return {"error": f"{type(error).__name__}: {error}"}
    return {"texts": texts, "result": result}


async def parse(job):
    """Each event and each whole message, read by the very types that the official client reads them with."""
    event_type, message_type = TypeAdapter(RawMessageStreamEvent), TypeAdapter(Message)
    types = []
    for number in range(job["requests"]):
        stream = number % 2 == 0
        body = {"model": "scripted", "max_tokens": 1, "messages": [], "stream": stream}
        request = urllib.request.Request(f"{job['base_url']}/v1/messages", json.dumps(body).encode())
        answer = urllib.request.urlopen(request, timeout=60).read().decode()
        if not stream:
            message_type.validate_json(answer)
            continue
        for event in answer.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in event.splitlines())
            if "data" in lines:
                parsed = event_type.validate_json(lines["data"])
                assert parsed.type == lines["event"], event
                types.append(parsed.type)
    return {"types": types}


async def main():
    at_once = asyncio.Semaphore(4)

    async def run(job):
        async with at_once:
            try:
                result = await asyncio.wait_for(parse(job) if "requests" in job else ask(job), 120)
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"name": job["name"], **result}), flush=True)

    await asyncio.gather(*(run(json.loads(line)) for line in sys.stdin))


asyncio.run(main())
