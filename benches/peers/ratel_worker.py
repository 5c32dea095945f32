"""ratel-ai over a file of tools, asked by lines on standard input: ratel_worker.py TOOLS

A request is {"queries": [text], "clients": n}; the answer has the ids found and the times.
"""
import asyncio
import json
import sys
import threading
import time

from ratel_ai import ExecutableTool, ToolCatalog

catalog = ToolCatalog()
with open(sys.argv[1]) as file:
    tools = [ExecutableTool(id=tool["id"], name=tool["name"], description=tool["description"],
                            input_schema=tool["parameters"], output_schema={}, execute=lambda _: None)
             for tool in json.load(file)]


async def register():
    await catalog.register(tools)


asyncio.run(register())
print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    queries, clients = request["queries"], request["clients"]
    answers, times = [None] * len(queries), []

    def work(first):
        for at in range(first, len(queries), clients):
            begin = time.monotonic()
            hits = catalog.search(queries[at], 3)
            times.append(1000 * (time.monotonic() - begin))
            answers[at] = [hit.tool_id for hit in hits]

    threads = [threading.Thread(target=work, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"answers": answers, "times_ms": times}), flush=True)
