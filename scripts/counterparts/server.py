"""A server made with the official Python library, for the client of `contexture chat`: `http PORT`, or over pipes."""

import asyncio
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("counterpart")


class Sum(BaseModel):
    total: int


class Tea(BaseModel):
    kind: str
    cups: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(total=a + b)


@server.tool()
async def slowly(ctx: Context) -> str:
    """Says how far it is."""
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {step}")
        await asyncio.sleep(0.05)
    return "done slowly"


async def which() -> Elicit[Tea]:
    return Elicit("Which tea?", Tea)


@server.tool()
def order(tea: Annotated[Tea, Resolve(which)]) -> str:
    """Asks which tea."""
    return f"{tea.cups} cups of {tea.kind}"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("this always fails")


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
