"""fastmcp with its BM25 search transform over a file of tools: fastmcp_server.py TOOLS PORT"""
import json
import sys

from fastmcp import FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool, ToolResult


class Listed(Tool):
    """A tool that is only found."""

    async def run(self, arguments):
        return ToolResult(content="not run here")


server = FastMCP("bench")
with open(sys.argv[1]) as file:
    for tool in json.load(file):
        server.add_tool(Listed(name=tool["name"], description=tool["description"], parameters=tool["parameters"]))
server.add_transform(BM25SearchTransform(max_results=3))
server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), stateless_http=True,
           json_response=True, show_banner=False, uvicorn_config={"log_level": "error"})
