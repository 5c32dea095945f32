"""Tests the server with the client of FastMCP.

    fastmcp_client.py [--era modern|legacy] URL
    fastmcp_client.py [--era modern|legacy] -- COMMAND ARGUMENT..

Environment: TOOLCRIB_BEARER, a token for the Authorization header.
"""

import os

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from conversation import Result, check_era, converse, main

NAME = "fastmcp"


async def talk(options):
    if options.url is None:
        command, *arguments = options.server
        transport = StdioTransport(command, arguments, env=dict(os.environ), keep_alive=False)
    else:
        transport = StreamableHttpTransport(options.url, headers=options.headers)
    mode = "auto" if options.era == "modern" else "legacy"
    async with Client(transport, mode=mode) as client:
        check_era(options, client.protocol_version)

        async def list_tools():
            return [tool.name for tool in await client.list_tools()]

        async def call_tool(name, arguments):
            result = await client.call_tool(name, arguments, raise_on_error=False)
            return Result(result.is_error, result.content, result.structured_content)

        await converse(NAME, list_tools, call_tool)


if __name__ == "__main__":
    main(NAME, talk)
