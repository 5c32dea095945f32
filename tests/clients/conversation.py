"""The conversation that each Python client has with the server.

A client program gives two functions, `list_tools` and `call_tool`; what is
asked, and what must come back, stands here, and again in conversation.mjs.
"""

import argparse
import asyncio
import os
import sys
from dataclasses import dataclass

MODERN = "2026-07-28"
QUERY = "echo a message back to me"
SEARCH_KEYS = {"workflow_run_id", "step", "capability_token", "tool_candidates", "message", "instructions"}
DEADLINE_S = 60
# On the surface `gateway`, with everything__echo and time__* eager.
GATEWAY_TOOLS = [
    "crib__describe_tool",
    "crib__execute_tool",
    "crib__search_tools",
    "everything__echo",
    "time__convert_time",
    "time__get_current_time",
]
COLD = "everything__get-sum"
SUM = "The sum of 2 and 3 is 5."


class Mismatch(Exception):
    """The server said something else than it must."""


@dataclass(frozen=True)
class Result:
    """A tool's result, as the client library hands it over."""

    is_error: bool
    content: list
    structured: object


def main(client, talk):
    """Runs `talk(options)`, an async function, and turns its outcome into a line and an exit code."""
    options = parse_arguments(client)
    try:
        asyncio.run(asyncio.wait_for(talk(options), DEADLINE_S))
    except Exception as error:
        print(f"failed {client} {options.era}: {reason(error)}", file=sys.stderr)
        sys.exit(1)
    print(f"ok {client} {options.era}")


def parse_arguments(client):
    parser = argparse.ArgumentParser(description=f"Tests a running server with {client}.")
    parser.add_argument("--era", choices=["modern", "legacy"], default="modern")
    parser.add_argument("server", nargs="+", help="its URL, or after `--` the command line of a stdio server")
    options = parser.parse_args()
    options.url = options.server[0] if options.server[0].startswith(("http://", "https://")) else None
    token = os.environ.get("TOOLCRIB_BEARER")
    options.headers = {"Authorization": f"Bearer {token}"} if token else {}
    return options


def check_era(options, version):
    is_modern = version is not None and version >= MODERN
    expect("protocol version", is_modern, options.era == "modern", f"the server speaks {version}")


async def converse(client, list_tools, call_tool):
    """The conversation of the surface that `TOOLCRIB_SURFACE` names."""
    surfaces = {"connected": connected, "gateway": gateway, "discovery": discovery}
    await surfaces[os.environ.get("TOOLCRIB_SURFACE", "connected")](client, list_tools, call_tool)


async def connected(client, list_tools, call_tool):
    expect("tools", sorted(await list_tools()), ["run_tool", "search_tools"])

    found = await call_tool("search_tools", {"query": QUERY})
    expect("`isError` of search_tools", found.is_error, False, found)
    search = found.structured
    missing = SEARCH_KEYS - set(search or {})
    expect("keys missing in structuredContent of search_tools", sorted(missing), [], search)
    candidates = [(one["server_name"], one["tool_details"]["name"]) for one in search["tool_candidates"]]
    expect("`everything`/`echo` is a candidate", ("everything", "echo") in candidates, True, candidates)

    words = f"hello from {client}"
    arguments = {
        "capability_token": search["capability_token"],
        "tool_name": "echo",
        "server_name": "everything",
        "arguments": {"message": words},
    }
    echoed = await call_tool("run_tool", arguments)
    expect("`isError` of run_tool", echoed.is_error, False, echoed)
    expect("content of run_tool", [texts(block) for block in echoed.content], [("text", f"Echo: {words}")])

    refused = await call_tool("run_tool", arguments)
    expect("`isError` of run_tool with a used handle", refused.is_error, True, refused)
    code = (refused.structured or {}).get("error")
    expect("`error` of run_tool with a used handle", code, "INVALID_TOKEN", refused)


async def gateway(_client, list_tools, call_tool):
    expect("tools", sorted(await list_tools()), GATEWAY_TOOLS)

    found = await call_tool("crib__search_tools", {"query": "add two numbers", "max_results": 4})
    expect("`isError` of crib__search_tools", found.is_error, False, found)
    matches = found.structured["tools"]
    expect("number of matches", len(matches), 4, matches)
    expect("keys of a match", sorted(matches[0]), ["description", "name"], matches)
    expect("a cold tool is found", COLD in [one["name"] for one in matches], True, matches)

    described = await call_tool("crib__describe_tool", {"names": [COLD, "everything__echo"]})
    expect("`isError` of crib__describe_tool", described.is_error, False, described)
    schemas = [(one["name"], one["inputSchema"]["required"]) for one in described.structured["tools"]]
    expect("what is described", schemas, [(COLD, ["a", "b"]), ("everything__echo", ["message"])])

    arguments = {"a": 2, "b": 3}
    for name, given in [
        ("crib__execute_tool", {"name": COLD, "arguments": arguments}),
        (COLD, arguments),
    ]:
        ran = await call_tool(name, given)
        expect(f"`isError` of {name}", ran.is_error, False, ran)
        expect(f"content of {name}", [texts(block) for block in ran.content], [("text", SUM)])

    refused = await call_tool("crib__execute_tool", {"name": COLD, "arguments": {"a": 2}})
    expect("`isError` with an argument missing", refused.is_error, True, refused)
    expect("`error` with an argument missing", refused.structured["error"], "INVALID_ARGUMENTS", refused)
    unknown = await call_tool("crib__execute_tool", {"name": "everything__get-sums", "arguments": {}})
    expect("`error` of an unknown name", unknown.structured["error"], "UNKNOWN_TOOL", unknown)
    expect("the nearest name", COLD in unknown.structured["hint"], True, unknown)


async def discovery(_client, list_tools, call_tool):
    expect("tools", sorted(await list_tools()), ["execute_tool", "time__get_current_time", "tool_search"])

    found = await call_tool("tool_search", {"query": "everything get-sum", "max_results": 3})
    expect("`isError` of tool_search", found.is_error, False, found)
    tools = found.structured["tools"]
    expect("number of tools", len(tools), 3, tools)
    expect("keys of a tool", sorted(tools[0]), ["description", "input_schema", "name", "score"], tools)
    expect("the best tool", tools[0]["name"], COLD, tools)
    expect("its schema", tools[0]["input_schema"]["required"], ["a", "b"], tools)
    scores = [one["score"] for one in tools]
    expect("the order", scores, sorted(scores, reverse=True))

    everything = await call_tool("tool_search", {"max_results": 100})
    names = [one["name"] for one in everything.structured["tools"]]
    expect("without a query all are listed by name", names, sorted(names), everything)
    expect("a hundred at most", len(names), min(everything.structured["total"], 100), names)

    ran = await call_tool("execute_tool", {"name": COLD, "arguments": {"a": 2, "b": 3}})
    expect("`isError` of execute_tool", ran.is_error, False, ran)
    expect("content of execute_tool", [texts(block) for block in ran.content], [("text", SUM)])

    refused = await call_tool("execute_tool", {"name": COLD, "arguments": {"a": 2}})
    expect("`error` with an argument missing", refused.structured["error"], "INVALID_ARGUMENTS", refused)
    unknown = await call_tool("execute_tool", {"name": "everything__get-sums", "arguments": {}})
    expect("`error` of an unknown name", unknown.structured["error"], "UNKNOWN_TOOL", unknown)
    expect("the nearest name", COLD in unknown.structured["hint"], True, unknown)


def texts(block):
    return (block.type, getattr(block, "text", None))


def expect(what, got, wanted, seen=None):
    if got != wanted:
        raise Mismatch(f"{what}: wanted {wanted!r}, got {got!r}" + (f"; {seen}" if seen is not None else ""))


def reason(error):
    """The innermost cause: client libraries wrap theirs in exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no end after {DEADLINE_S} s"
    return str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"
