"""Speaks with `gpumemprof mcp` by the official client of the protocol, over standard input and output."""

import os
from contextlib import asynccontextmanager

import anyio
import harness
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

FIXTURES = harness.ROOT / "tests" / "fixtures" / "recordings"


def run(argv, **popen):
    return harness.execute([harness.COMMAND, *argv], **popen)


class Answer:
    def __init__(self, result):
        self.is_error = bool(result.is_error)
        self.text = "\n".join(part.text for part in result.content)
        self.body, _, self.foot = self.text.rpartition("\n")

    def ok(self):
        assert not self.is_error, self.text
        return self

    def refused(self):
        """The one line of an error."""
        assert self.is_error, self.text
        assert "\n" not in self.text and 0 < len(self.text) <= 600, self.text
        return self.text


class Speaker:
    def __init__(self, session):
        self.session = session

    async def ask(self, tool, **arguments):
        return Answer(await self.session.call_tool(tool, arguments))

    async def whole(self, tool, **arguments):
        """All pages of an answer."""
        pages, number = [], 1
        while True:
            answer = (await self.ask(tool, **arguments, page=number)).ok()
            pages.append(answer)
            if "next: page=" not in answer.foot:
                return pages
            number += 1


@asynccontextmanager
async def speaker(*folders, options=(), env=None):
    parameters = StdioServerParameters(
        command=harness.COMMAND, args=["mcp", *map(str, folders), *options],
        env={"PATH": os.environ["PATH"], "GPUMEMPROF_PYTHON": harness.PYTHON, **(env or {})})
    with open(os.devnull, "w") as nothing:
        async with stdio_client(parameters, errlog=nothing) as (incoming, outgoing):
            async with ClientSession(incoming, outgoing) as session:
                await session.initialize()
                yield Speaker(session)


def talk(use, *folders, **options):
    """use(Speaker), from code that is not asynchronous."""
    async def main():
        with anyio.fail_after(120):
            async with speaker(*folders, **options) as one:
                return await use(one)

    return anyio.run(main)
