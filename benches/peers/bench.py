"""Measures Toolcrib against peers, in one run, on the same catalogs and queries.

usage: python bench.py PROGRAM HOME LABELLED CATALOGS [--queries N] [--json FILE]

PROGRAM is the release build, HOME its data folder with the models (vectors are kept there too),
LABELLED a folder of SET.queries.jsonl and SET.tools.jsonl, CATALOGS a folder with
merged/catalog.jsonl and merged/extended.jsonl in normal form.

Toolcrib and fastmcp (BM25 search transform) are asked over HTTP, ratel-ai in process (BM25); each
runs in a process of its own, on loopback. Quality is hit@1 and hit@3 on at most N queries a set,
drawn with a fixed seed; speed is p50 and p99 at one and at eight clients, no query asked twice.
"""
import argparse
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 18890
SEED = 20
START_LIMIT_S = 1800
ANSWER_LIMIT_S = 120
# How many queries time a peer: a slow one is asked fewer, so that the whole run ends.
TIMED = {"toolcrib": 400, "ratel-ai": 400, "fastmcp": 120}
SIZES = (1269, 3461, 11287)


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


class World:
    """Servers with tools, by names that all peers take."""

    def __init__(self, name, servers):
        self.name, self.servers = name, servers
        self.tools = [(server, tool) for server in servers for tool in server["tools"]]

    def normal_form(self):
        return "".join(json.dumps(server) + "\n" for server in self.servers)

    def plain(self):
        """What the peers in Python are given: one name, one description, one schema a tool."""
        return [{"name": f"{server['name']}_{tool['name']}", "id": f"{server['name']}/{tool['name']}",
                 "description": tool["description"],
                 "parameters": {"type": "object", "properties": {
                     argument["name"]: {"type": "string", "description": argument.get("desc") or ""}
                     for argument in tool["arguments"]}}}
                for server, tool in self.tools]


class Names:
    """Brings names into the alphabet of all peers, and tells those apart that become one."""

    def __init__(self):
        self.given, self.taken = {}, set()

    def of(self, scope, key, text, alphabet):
        """The name of what `key` stands for in a scope, once and for all."""
        if (scope, key) not in self.given:
            plain = re.sub(f"[^{alphabet}]+", "-", text).strip("-") or "x"
            name, number = plain[:50], 1
            while (scope, name) in self.taken:
                number += 1
                name = f"{plain[:50]}-{number}"
            self.taken.add((scope, name))
            self.given[scope, key] = name
        return self.given[scope, key]

    def server(self, text):
        return self.of("", text, text.lower() if text[:1].isalpha() else f"s{text.lower()}", "a-z0-9")

    def tool(self, server, key, text):
        return self.of(f"/{server}", key, text, "A-Za-z0-9_.")


def server_of(names, name, title, description, tools):
    described = [{"name": names.tool(name, tool["id"], tool["name"]), "description": tool.get("description") or "",
                  "arguments": [{"name": str(argument["name"]), "type": "string",
                                 "desc": argument.get("desc") or argument.get("description") or ""}
                                for argument in tool.get("arguments") or []]} for tool in tools]
    return {"name": names.server(name), "title": title or name, "description": description or "",
            "category": "bench", "tags": [], "owner": "bench",
            "launch": {"kind": "http", "url": "https://bench.invalid/mcp"}, "tools": described}


def world_of_catalog(path, names, tools_max=None):
    servers, count = [], 0
    for line in lines(path):
        tools = line["tools"] if tools_max is None else line["tools"][:tools_max - count]
        tools = [dict(tool, id=f"{line['name']}:{tool['name']}") for tool in tools]
        tools = list({tool["id"]: tool for tool in tools}.values())
        if tools:
            servers.append(server_of(names, line["name"], line.get("title"), line.get("description"), tools))
        count += len(tools)
    return World(os.path.basename(path), servers)


def world_of_tools(path, names):
    by_server = {}
    for tool in lines(path):
        by_server.setdefault(tool["server"], []).append(tool)
    servers = [server_of(names, name, tools[0].get("server_title"), tools[0].get("server_description"), tools)
               for name, tools in by_server.items()]
    return World(os.path.basename(path), servers)


def labelled_sets(folder, catalogs, most):
    """Each set: its name, its world, and queries with the ids that are right."""
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".queries.jsonl"):
            continue
        name, names = file.split(".")[0], Names()
        tools = os.path.join(folder, f"{name}.tools.jsonl")
        if os.path.exists(tools):
            world = world_of_tools(tools, names)
            server_of_id = {tool["id"]: tool["server"] for tool in lines(tools)}
        else:
            path = os.path.join(catalogs, "merged/catalog.jsonl")
            world = world_of_catalog(path, names)
            server_of_id = {f"{line['name']}:{tool['name']}": line["name"]
                            for line in lines(path) for tool in line["tools"]}
        queries = lines(os.path.join(folder, file))
        random.Random(SEED).shuffle(queries)
        asked = []
        for query in queries[:most]:
            right = {f"{names.server(server_of_id[tool])}/{names.tool(server_of_id[tool], tool, tool)}"
                     for tool in query["relevant"]}
            asked.append((query["query"][:2000], right))
        yield name, world, asked


def memory_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024


class OverHttp:
    """A server in a process of its own, asked by MCP over HTTP."""

    def __init__(self, arguments, environment, probe):
        self.process = subprocess.Popen(arguments, env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_LIMIT_S
        while not probe():
            if self.process.poll() is not None or end < time.monotonic():
                self.stop()
                raise SystemExit(f"{arguments[0]} did not start")
            time.sleep(0.2)

    def client(self):
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=ANSWER_LIMIT_S)
        return lambda query: self.read(call(connection, "search_tools", {"query": query}))

    def memory(self):
        return memory_mb(self.process.pid)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def call(connection, tool, arguments):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": tool, "arguments": arguments}})
    connection.request("POST", "/mcp", body, {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18"})
    answer = connection.getresponse().read().decode()
    if answer.startswith(("event:", "data:")):
        answer = next(line[5:] for line in answer.splitlines() if line.startswith("data:"))
    return json.loads(answer)["result"]


class Toolcrib(OverHttp):
    """The program under test."""

    def __init__(self, world, program, home):
        self.folder = tempfile.TemporaryDirectory()
        catalog = os.path.join(self.folder.name, "catalog.jsonl")
        with open(catalog, "w") as file:
            file.write(world.normal_form())
        config = os.path.join(self.folder.name, "toolcrib.toml")
        with open(config, "w") as file:
            file.write(f'''
[server]
listen = "127.0.0.1:{PORT}"
admin_listen = "127.0.0.1:{PORT + 1}"
[catalog]
builtin = false
[[catalog.sources]]
name = "bench"
format = "normal-form"
path = "{catalog}"
policy = "trust"
[limits]
searches_per_minute = 10000000
[handles]
alive_max = 1000000
[log]
level = "error"
''')
        data = os.path.join(self.folder.name, "home")
        os.makedirs(data)
        for shared in ("models", "cache"):
            os.makedirs(os.path.join(home, shared), exist_ok=True)
            os.symlink(os.path.join(os.path.abspath(home), shared), os.path.join(data, shared))
        environment = dict(os.environ, TOOLCRIB_HOME=data)
        command = [program, "--config", config]
        subprocess.run([*command, "catalog", "refresh"], env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        super().__init__([*command, "serve"], environment, lambda: self.has(len(world.tools)))

    @staticmethod
    def has(tools):
        """Whether all tools are there with their vectors."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", PORT + 1, timeout=10)
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError:
            return False
        return answer.status == 200 and "vectors" in text and json.loads(text)["tools"] == tools

    @staticmethod
    def read(result):
        return [f"{found['server_name']}/{found['tool_details']['name']}"
                for found in result["structuredContent"].get("tool_candidates", [])]

    def stop(self):
        super().stop()
        self.folder.cleanup()


class Fastmcp(OverHttp):
    """fastmcp with its BM25 search transform."""

    def __init__(self, world):
        tools = write(world)
        self.ids = {tool["name"]: tool["id"] for tool in world.plain()}
        super().__init__([sys.executable, os.path.join(HERE, "fastmcp_server.py"), tools, str(PORT)],
                         dict(os.environ, FASTMCP_LOG_LEVEL="ERROR"), self.up)

    def up(self):
        try:
            self.client()("warm up")
        except (OSError, http.client.HTTPException, KeyError, ValueError):
            return False
        return True

    def read(self, result):
        found = (result.get("structuredContent") or {}).get("result") or []
        return [self.ids[tool["name"]] for tool in found[:3]]


def write(world):
    file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
    with file:
        json.dump(world.plain(), file)
    return file.name


class Ratel:
    """ratel-ai in a process of its own: asked in process, which is its best case."""

    def __init__(self, world):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "ratel_worker.py"), write(world)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def memory(self):
        return memory_mb(self.process.pid)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def quality(peer, asked):
    if isinstance(peer, Ratel):
        answers = peer.ask({"queries": [query for query, _ in asked], "clients": 1})["answers"]
    else:
        search = peer.client()
        answers = [search(query) for query, _ in asked]
    hit = [[bool(set(found[:k]) & right) for found, (_, right) in zip(answers, asked)] for k in (1, 3)]
    return [100 * statistics.mean(row) for row in hit]


def speed(peer, queries, clients):
    """Milliseconds of each search, the clients asking at once, each with queries of its own."""
    if isinstance(peer, Ratel):
        return sorted(peer.ask({"queries": queries, "clients": clients})["times_ms"])
    times, failed = [], []

    def work(mine):
        search = peer.client()
        try:
            for query in mine:
                begin = time.monotonic()
                search(query)
                times.append(1000 * (time.monotonic() - begin))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(queries[at::clients],)) for at in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sorted(times)


def inference(home, queries):
    """Milliseconds of one bare run of the embedding model on each query, text to vector."""
    import numpy
    import onnxruntime
    from tokenizers import Tokenizer
    folder = os.path.join(home, "models/minilm-int8")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options)
    inputs = {entry.name for entry in session.get_inputs()}
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    times = []
    for query in queries:
        begin = time.monotonic()
        read = tokenizer.encode(query)
        feed = {"input_ids": read.ids, "attention_mask": read.attention_mask, "token_type_ids": read.type_ids}
        session.run(None, {name: numpy.array([ids]) for name, ids in feed.items() if name in inputs})
        times.append(1000 * (time.monotonic() - begin))
    return sorted(times)


def at(times, share):
    return times[min(len(times) - 1, int(len(times) * share))]


def each_peer(world, program, home):
    for name, start in (("toolcrib", lambda: Toolcrib(world, program, home)),
                        ("fastmcp", lambda: Fastmcp(world)), ("ratel-ai", lambda: Ratel(world))):
        peer = start()
        try:
            yield name, peer
        finally:
            peer.stop()


def measure_quality(arguments, results):
    print(f"quality, hit@1 / hit@3 in %, at most {arguments.queries} queries a set")
    print(f"{'set':20} {'tools':>6} {'queries':>7}  {'toolcrib':>13} {'fastmcp':>13} {'ratel-ai':>13}")
    for name, world, asked in labelled_sets(arguments.labelled, arguments.catalogs, arguments.queries):
        row = {}
        for peer_name, peer in each_peer(world, arguments.program, arguments.home):
            row[peer_name] = quality(peer, asked)
        results["quality"][name] = row
        cells = " ".join(f"{row[peer][0]:6.1f} /{row[peer][1]:5.1f}" for peer in ("toolcrib", "fastmcp", "ratel-ai"))
        print(f"{name:20} {len(world.tools):6} {len(asked):7}  {cells}", flush=True)


def timed_queries(labelled):
    texts = [query["query"] for file in sorted(os.listdir(labelled)) if file.endswith(".queries.jsonl")
             for query in lines(os.path.join(labelled, file))]
    # Requests as agents make them; the long tasks of one set would time the model's window.
    texts = sorted({text for text in texts if len(text) <= 120})
    random.Random(SEED).shuffle(texts)
    return texts


def measure_speed(arguments, results):
    texts = timed_queries(arguments.labelled)
    print("\nspeed, ms, no query twice; memory resident after it")
    print(f"{'tools':>6} {'peer':10} {'1 client p50':>12} {'p99':>8} {'8 clients p50':>14} {'p99':>8} {'MB':>7}")
    for size in SIZES:
        file = "merged/extended.jsonl" if 3461 < size else "merged/catalog.jsonl"
        world = world_of_catalog(os.path.join(arguments.catalogs, file), Names(), size)
        row = {}
        for name, peer in each_peer(world, arguments.program, arguments.home):
            count = TIMED[name]
            speed(peer, texts[2 * count:2 * count + 20], 1)
            one, eight = speed(peer, texts[:count], 1), speed(peer, texts[count:2 * count], 8)
            row[name] = {"one": [at(one, .5), at(one, .99)], "eight": [at(eight, .5), at(eight, .99)],
                         "memory_mb": peer.memory()}
            print(f"{len(world.tools):6} {name:10} {at(one, .5):12.2f} {at(one, .99):8.2f} "
                  f"{at(eight, .5):14.2f} {at(eight, .99):8.2f} {peer.memory():7.0f}", flush=True)
            if name == "toolcrib":
                bare = inference(arguments.home, texts[:count])
                row["inference"] = [at(bare, .5), at(bare, .99)]
        ours, theirs = row["toolcrib"], row["fastmcp"]
        print(f"{'':6} toolcrib / bare inference {ours['one'][0] / row['inference'][0]:.2f} "
              f"(inference p50 {row['inference'][0]:.2f}); fastmcp / toolcrib "
              f"{theirs['one'][0] / ours['one'][0]:.0f} at one client, "
              f"{theirs['eight'][0] / ours['eight'][0]:.0f} at eight", flush=True)
        results["speed"][len(world.tools)] = row


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "home", "labelled", "catalogs"):
        parser.add_argument(name)
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--json")
    parser.add_argument("--only", choices=("quality", "speed"))
    arguments = parser.parse_args()
    results = {"quality": {}, "speed": {}}
    if arguments.only != "speed":
        measure_quality(arguments, results)
    if arguments.only != "quality":
        measure_speed(arguments, results)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
