"""Tests the server with the Python SDK.

    python_mcp.py [--era modern|legacy] URL
    python_mcp.py [--era modern|legacy] -- COMMAND ARGUMENT..

Environment: TOOLCRIB_BEARER, a token for the Authorization header.
"""

import os

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from conversation import DEADLINE_S, Result, check_era, converse, main

NAME = "python-mcp"


async def talk(options):
    if options.url is None:
        command, *arguments = options.server
        await talk_to(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)), options)
    else:
        async with httpx2.AsyncClient(headers=options.headers, timeout=DEADLINE_S) as http:
            await talk_to(streamable_http_client(options.url, http_client=http), options)


async def talk_to(server, options):
    # "auto" asks `server/discover`; naming the version would skip that question.
    mode = "auto" if options.era == "modern" else "legacy"
    async with Client(server, mode=mode) as client:
        check_era(options, client.protocol_version)

        async def list_tools():
            return [tool.name for tool in (await client.list_tools()).tools]

        async def call_tool(name, arguments):
            result = await client.call_tool(name, arguments)
            return Result(bool(result.is_error), result.content, result.structured_content)

        await converse(NAME, list_tools, call_tool)


if __name__ == "__main__":
    main(NAME, talk)
