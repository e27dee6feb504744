"""The official Python client against `contexture mcp`: over standard input and output and over HTTP, in each revision."""

import asyncio
import itertools
import re
import subprocess
import sys
import tempfile

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PROGRAM = sys.argv[1]
NUMBERS = itertools.count()


async def talk(client, expected):
    """Uses every kind of result, and everything that can go wrong."""
    assert client.protocol_version == expected, client.protocol_version
    tools = (await client.list_tools()).tools
    names = [tool.name for tool in tools]
    assert "memory_create" in names and "search_past" in names, names
    seen = []

    async def progress(done, total, message):
        seen.append((done, total, message))

    path = f"/memories/{next(NUMBERS)}.md"
    made = await client.call_tool(
        "memory_create", {"path": path, "file_text": "Ada likes oolong.\n"}, progress_callback=progress
    )
    assert not made.is_error, made
    again = await client.call_tool("memory_create", {"path": path, "file_text": "x"})
    assert again.is_error and "already exists" in again.content[0].text, again
    assert seen == [(0, 1, "memory_create")], seen
    shown = await client.call_tool("memory_view", {"path": path})
    assert "oolong" in shown.content[0].text, shown
    refused = await client.call_tool("memory_view", {"path": "/etc/passwd"})
    assert refused.is_error, refused
    # The client checks this against the schema of the tool.
    found = await client.call_tool("search_past", {"text": "Which tea does Ada like?"})
    assert found.structured_content["is_found"] is False, found
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("it is not known")
    except Exception as error:
        assert "no_such_tool" in str(error), error
    many = await asyncio.gather(*(client.call_tool("memory_view", {"path": path}) for _ in range(20)))
    assert all("oolong" in one.content[0].text for one in many)
    print("ok", expected)


async def main():
    with tempfile.TemporaryDirectory() as directory:
        store = f"{directory}/m.db"
        stdio = StdioServerParameters(command=PROGRAM, args=["mcp", "--store", store])
        for mode, expected in [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]:
            async with Client(stdio, mode=mode) as client:
                await talk(client, expected)
        server = subprocess.Popen(
            [PROGRAM, "mcp", "--store", store, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        try:
            url = re.search(r"http://\S+", server.stdout.readline())[0]
            token = server.stdout.readline().split()[1]
            for mode, expected in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
                async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
                    async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                        await talk(client, expected)
            async with httpx2.AsyncClient() as http:
                try:
                    async with Client(streamable_http_client(url, http_client=http)) as client:
                        await client.list_tools()
                    raise AssertionError("it asks for a token")
                except Exception as error:
                    print("ok refused without a token:", type(error).__name__)
        finally:
            server.terminate()


asyncio.run(main())
