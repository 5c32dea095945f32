"""A program `docker` for tests: it keeps its command line and environment in `log` beside itself.

`run` starts the Python program that stands behind the image, as a daemon would: in a session of its
own, with no parent, and with the variables that `--env` names. It waits for its end and, as `--rm`
says, forgets it. `rm --force` kills it.
"""

import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VALUED = {"--name", "--label", "--security-opt", "--memory", "--pids-limit", "--network", "--env"}


def runs(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def forget(place):
    if os.path.exists(place):
        os.remove(place)


def start(args):
    """The container's process, by way of one that ends at once."""
    options, rest = [], args[1:]
    while rest[0].startswith("-"):
        taken = 2 if rest[0] in VALUED else 1
        options.append(rest[:taken])
        rest = rest[taken:]
    names = [option[1] for option in options if option[0] == "--env"]
    place = os.path.join(HERE, "containers", dict(o for o in options if len(o) == 2)["--name"])
    environment = {name: os.environ[name] for name in names}
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            os.execve(sys.executable, [sys.executable] + rest[1:], environment)
        os.write(writer, str(pid).encode())
        os._exit(0)
    os.waitpid(between, 0)
    pid = int(os.read(reader, 32))
    with open(place + ".new", "w") as file:
        file.write(str(pid))
    os.rename(place + ".new", place)
    return pid, place


def main():
    args = sys.argv[1:]
    with open(os.path.join(HERE, "log"), "a") as file:
        file.write(json.dumps({"args": args, "env": dict(os.environ)}) + "\n")
    if args[0] == "run":
        pid, place = start(args)
        # The client hands its own signals on.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
        # Its streams are the container's alone.
        for stream in (0, 1, 2):
            os.close(stream)
        while runs(pid):
            time.sleep(0.02)
        forget(place)
    elif args[0] == "rm":
        place = os.path.join(HERE, "containers", args[-1])
        if not os.path.exists(place):
            sys.exit(1)
        with open(place) as file:
            pid = int(file.read())
        os.kill(pid, signal.SIGKILL)
        while runs(pid):
            time.sleep(0.02)
        forget(place)


main()
