"""Prints the figures of the README: cold and warm start, memory, one search, idle CPU, and the
memory of all surfaces on one process.

usage: python3 benches/figures.py PROGRAM MODELS_FOLDER

Starts PROGRAM on loopback in a data folder of its own, with the models of MODELS_FOLDER, asks it
300 queries one after the other, and stops it.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PORT = 18787
QUERIES = 300


SEARCH_TOOLS = {"connected": "search_tools", "gateway": "crib__search_tools", "discovery": "tool_search"}
ALL_SURFACES = list(SEARCH_TOOLS)


def search(query):
    return call("", "search_tools", {"query": query})


def call(path, tool, arguments):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    url = f"http://127.0.0.1:{PORT}/mcp{path}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["result"]["structuredContent"]


def until(act, limit_s=120):
    """Repeats an act until it works, and gives what it gave."""
    end = time.monotonic() + limit_s
    while True:
        try:
            return act()
        except (urllib.error.URLError, ConnectionError):
            if end < time.monotonic():
                raise
            time.sleep(0.005)


def ready():
    urllib.request.urlopen(f"http://127.0.0.1:{PORT + 1}/readyz", timeout=30).close()


def start(program, home, surfaces=()):
    environment = dict(os.environ, TOOLCRIB_HOME=home, TOOLCRIB_LOG__LEVEL="error",
                       TOOLCRIB_SERVER__SURFACES=json.dumps(list(surfaces)), TOOLCRIB_TOOLS__SEARCH="{}")
    begin = time.monotonic()
    process = subprocess.Popen(
        [program, "serve", "--listen", f"127.0.0.1:{PORT}", "--admin-listen", f"127.0.0.1:{PORT + 1}"],
        env=environment, stderr=subprocess.DEVNULL)
    until(lambda: search("post a message to a slack channel"))
    first = time.monotonic() - begin
    until(ready)
    return process, first, time.monotonic() - begin


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)


def memory_mb(process):
    with open(f"/proc/{process.pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024


def cpu_ticks(process):
    with open(f"/proc/{process.pid}/stat") as stat:
        return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))


def main(program, models):
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as home:
        os.symlink(os.path.abspath(models), os.path.join(home, "models"))
        process, first, whole = start(program, home)
        print(f"cold start: first answer {first:.2f} s, all vectors made {whole:.1f} s, "
              f"{memory_mb(process):.0f} MB")
        stop(process)
        process, first, whole = start(program, home)
        print(f"warm start: first answer {first:.2f} s, with vectors {whole:.2f} s, "
              f"{memory_mb(process):.0f} MB")
        times = []
        for number in range(QUERIES):
            begin = time.monotonic()
            search(f"send report {number} about topic {number % 17} to the team channel")
            times.append(1000 * (time.monotonic() - begin))
        times.sort()
        print(f"one search over HTTP, none twice: p50 {times[QUERIES // 2]:.1f} ms, "
              f"p99 {times[QUERIES * 99 // 100]:.1f} ms, {memory_mb(process):.0f} MB")
        before = cpu_ticks(process)
        time.sleep(10)
        share = 100 * (cpu_ticks(process) - before) / os.sysconf("SC_CLK_TCK") / 10
        print(f"idle: {share:.1f} % of a core")
        stop(process)
        memory(program, home)


def memory(program, home):
    """One surface against all on one process, after the same number of searches."""
    grown = []
    for surfaces in [ALL_SURFACES[:1], ALL_SURFACES]:
        process, _, _ = start(program, home, surfaces)
        for number in range(QUERIES):
            name = surfaces[number % len(surfaces)]
            tool = SEARCH_TOOLS[name]
            call(f"/{name}", tool, {"query": f"send report {number} to the team channel"})
        grown.append(memory_mb(process))
        stop(process)
    one, all_of_them = grown
    print(f"surfaces: {one:.1f} MB with one, {all_of_them:.1f} MB with {len(ALL_SURFACES)} on one "
          f"process and one index ({100 * (all_of_them - one) / one:+.1f} %)")


if __name__ == "__main__":
    main(*sys.argv[1:3])
