"""Prints what a refresh costs: cold, unchanged, one tool changed; and searches meanwhile.

usage: python3 benches/refresh.py PROGRAM MODELS_FOLDER CATALOG [SECONDS]

CATALOG is a file in normal form, one server a line. PROGRAM serves it on loopback from a data
folder of its own, so that every vector is made anew. Then eight clients search for SECONDS (60),
quietly first, then while the catalog is replaced 20 times; the 99th percentiles are compared.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from figures import PORT, cpu_ticks, memory_mb, search, until

REPLACEMENTS = 20
CLIENTS = 8
CONFIG = """
[server]
listen = "127.0.0.1:{port}"
admin_listen = "127.0.0.1:{admin}"
[catalog]
builtin = false
refresh_s = 0
[[catalog.sources]]
name = "bench"
format = "normal-form"
path = "{catalog}"
policy = "trust"
[limits]
searches_per_minute = 10000000
[handles]
alive_max = 10000000
[log]
level = "error"
"""


def admin(path, data=None):
    url = f"http://127.0.0.1:{PORT + 1}{path}"
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=600) as answer:
        return answer.read().decode()


def embedded():
    """Texts that the model has made vectors of, by the server's own count."""
    for line in admin("/metrics").splitlines():
        if line.startswith("toolcrib_embedded_tools_total"):
            return int(float(line.split()[-1]))
    return 0


def ready():
    text = admin("/readyz")
    if "vectors" not in text:
        raise ConnectionError("not yet")
    return json.loads(text)


def change(lines, number):
    """Gives one tool of the catalog another description."""
    server = json.loads(lines[number])
    server["tools"][0]["description"] = f"{server['tools'][0]['description']} Round {time.monotonic_ns()}."
    lines[number] = json.dumps(server) + "\n"


def write(path, lines):
    with open(path + ".new", "w") as file:
        file.writelines(lines)
    os.replace(path + ".new", path)


def refresh(process):
    """Seconds, CPU seconds and vectors made by one refresh, until its index is published."""
    begin, cpu, before = time.monotonic(), cpu_ticks(process), embedded()
    report = json.loads(admin("/admin/refresh", b""))
    seconds = time.monotonic() - begin
    return seconds, (cpu_ticks(process) - cpu) / os.sysconf("SC_CLK_TCK"), embedded() - before, report


def load(seconds):
    """Milliseconds of each search of all clients."""
    times, failed, end = [], [], time.monotonic() + seconds

    def work(client):
        number = 0
        while time.monotonic() < end:
            number += 1
            begin = time.monotonic()
            found = search(f"send report {number} of client {client} to the team channel")
            times.append(1000 * (time.monotonic() - begin))
            if len(found.get("tool_candidates", [])) != 3:
                failed.append(found)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    return times, failed, threads


def percentile(times, share):
    return sorted(times)[int(len(times) * share)]


def main(program, models, catalog, seconds="60"):
    seconds = int(seconds)
    with open(catalog) as file:
        lines = [line for line in file if json.loads(line)["tools"]]
    with tempfile.TemporaryDirectory() as home:
        os.symlink(os.path.abspath(models), os.path.join(home, "models"))
        path, config = os.path.join(home, "bench.jsonl"), os.path.join(home, "toolcrib.toml")
        write(path, lines)
        with open(config, "w") as file:
            file.write(CONFIG.format(port=PORT, admin=PORT + 1, catalog=path))
        begin = time.monotonic()
        process = subprocess.Popen([program, "--config", config, "serve"],
                                   env=dict(os.environ, TOOLCRIB_HOME=home))
        try:
            state = until(ready, 1800)
            cold = time.monotonic() - begin
            cold_cpu = cpu_ticks(process) / os.sysconf("SC_CLK_TCK")
            print(f"{state['tools']} tools: cold {cold:.1f} s, {cold_cpu:.1f} CPU s, "
                  f"{embedded()} embedded, {memory_mb(process):.0f} MB", flush=True)
            wall, cpu, count, _ = refresh(process)
            print(f"unchanged {wall:.1f} s, {cpu:.1f} CPU s ({100 * cpu / cold_cpu:.1f} %), {count} embedded",
                  flush=True)
            change(lines, len(lines) // 2)
            write(path, lines)
            wall, cpu, count, _ = refresh(process)
            print(f"one tool changed {wall:.1f} s, {cpu:.1f} CPU s ({100 * cpu / cold_cpu:.1f} %), "
                  f"{count} embedded, {memory_mb(process):.0f} MB", flush=True)
            quiet, failed, threads = load(seconds)
            for thread in threads:
                thread.join()
            busy, failed_too, threads = load(seconds)
            for number in range(REPLACEMENTS):
                turn = time.monotonic() + seconds / REPLACEMENTS
                change(lines, number)
                write(path, lines)
                refresh(process)
                time.sleep(max(0.0, turn - time.monotonic()))
            for thread in threads:
                thread.join()
            before, during = percentile(quiet, 0.99), percentile(busy, 0.99)
            print(f"{CLIENTS} clients: quiet {len(quiet)} searches, p99 {before:.1f} ms; replaced {REPLACEMENTS} "
                  f"times {len(busy)} searches, p99 {during:.1f} ms ({during / before:.2f} times), "
                  f"{len(failed) + len(failed_too)} failed")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


if __name__ == "__main__":
    main(*sys.argv[1:5])
