#!/usr/bin/env python3
"""Installs pinned packages into one directory, the same way every time.

    install.py [SOURCE_DIR] TARGET_DIR

SOURCE_DIR (default: the directory of this file) says what to install:

    install.json        title, oldest Node, oldest and newest Python
    package.json        and package-lock.json: the npm packages
    requirements*.in    the PyPI packages that are asked for, as `name==version`
    requirements*.txt   all of them with versions and hashes; each file gets
                        a virtual environment of its own

TARGET_DIR holds only what this program writes, so delete it to start over:

    npm/, python*/      one directory a part
    installed.json      each package that was asked for, and where its program
                        is, relative to TARGET_DIR
    stamp.json          the SHA-256 of the lock files of each finished part
    install.log         what npm and pip said

A part without a matching stamp is installed from scratch, so an interrupted
install is redone, and a finished one needs no network. Without Node or Python's
venv module the other part is still installed, with a warning. Exit code 1 means
that something must be done first; the last line says what.
"""

import argparse
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

# Part of each stamp: raise it when an old TARGET_DIR must be installed again.
LAYOUT = 1

DISK_NEEDED = "1 GB"
BAR_WIDTH = 24

# The pattern of a program that names no packages.
NOTHING = r"(?!)"

# What npm and pip print, most telling first: a full disk also shows as failed
# downloads, and pip ends a failed download with "no matching distribution".
FAILURES = [
    (
        r"ENOSPC|No space left on device|Errno 28|EDQUOT|quota exceeded",
        "the disk is full: free about " + DISK_NEEDED + " and run this again",
    ),
    (
        r"EINTEGRITY|DO NOT MATCH THE HASHES|sha512 integrity checksum failed",
        "a downloaded package is not the one that the lock file names: clear the caches "
        "(`npm cache clean --force`, `pip cache purge`) and run this again; if it stays, "
        "do not install it and ask who runs the package mirror",
    ),
    (
        r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH"
        r"|ERR_SOCKET_TIMEOUT|ENOTCACHED|NewConnectionError|ConnectTimeoutError|ReadTimeoutError"
        r"|ProxyError|name resolution|Max retries exceeded|Connection broken|Network is unreachable",
        "the package registries cannot be reached: check the network and the proxy settings "
        "of npm and pip, and run this again",
    ),
    (
        r"SELF_SIGNED_CERT|UNABLE_TO_(GET|VERIFY)\w*|CERTIFICATE_VERIFY_FAILED|SSLError",
        "the certificate of a package registry is not trusted: set `cafile` of npm and `cert` "
        "of pip to the certificates of your network, and run this again",
    ),
    (
        r"E40[134]\b|403 Forbidden|401 Unauthorized",
        "a package registry refuses a package: check the registry and the login that npm "
        "and pip are set to use, and run this again",
    ),
    (
        r"No matching distribution found",
        "no ready-made package for this Python or this machine: use Python 3.11 on Linux x86-64",
    ),
]


class Failure(Exception):
    """Something the reader must do before this can go on."""


class Missing(Exception):
    """A part cannot be installed here; the others can."""


class Step:
    """One line of output, with a bar while it runs on a terminal."""

    def __init__(self, number, count, what):
        self.head = "[%d/%d] %s" % (number, count, what)
        self.started = time.monotonic()
        self.terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        if not self.terminal:
            print(self.head, end=" ... ", flush=True)

    def seconds(self):
        return time.monotonic() - self.started

    def show(self, done, total):
        if not self.terminal:
            return
        filled = BAR_WIDTH * min(done, total) // max(total, 1)
        bar = "#" * filled + "-" * (BAR_WIDTH - filled)
        line = "%s [%s] %d of %d, %d s" % (self.head, bar, min(done, total), total, self.seconds())
        width = shutil.get_terminal_size().columns - 1
        print("\r" + line[:width] + "\x1b[K", end="", flush=True)

    def end(self, text):
        head = "\r" + self.head + " ... " if self.terminal else ""
        clear = "\x1b[K" if self.terminal else ""
        print("%s%s%s" % (head, text, clear), flush=True)


class NpmPart:
    """The npm packages of package-lock.json, in TARGET_DIR/npm."""

    name = "npm"
    what = "npm packages"

    def __init__(self, source, target, settings):
        self.target = target
        self.directory = target / self.name
        self.files = [source / "package.json", source / "package-lock.json"]
        self.node_min = tuple(int(part) for part in settings["node"].split("."))
        self.package = read_json(self.files[0])
        self.locked = read_json(self.files[1])["packages"]

    def check(self):
        advice = "install Node %s or newer with npm" % ".".join(map(str, self.node_min))
        version = output_of(["node", "--version"])
        if version is None or output_of(["npm", "--version"]) is None:
            raise Missing("Node or npm is not on the PATH: %s, and run this again" % advice)
        if version_of(version) < self.node_min:
            raise Missing("Node %s is too old: %s, and run this again" % (version, advice))

    def install(self, step, log):
        for file in self.files:
            shutil.copyfile(file, self.directory / file.name)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
        # A machine's own settings (NODE_ENV=production, say) must not change what is installed.
        command += ["--include=dev", "--include=optional", "--engine-strict=false", "--loglevel=http"]
        command += ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]
        packages = [entry for path, entry in self.locked.items() if path and runs_here(entry)]
        run(command, step, log, self.directory, r"/([^/ ]+\.tgz)\b", len(packages))
        return "%d packages" % len(packages)

    def asked(self):
        groups = ("dependencies", "devDependencies", "optionalDependencies")
        names = [name for group in groups for name in self.package.get(group, {})]
        for name in sorted(names):
            place = "node_modules/" + name
            if runs_here(self.locked[place]):
                yield name, self.directory / place, self.locked[place]

    def installed(self):
        found = {}
        for name, path, entry in self.asked():
            # npm leaves out an optional package that it cannot download, and says nothing.
            if not path.is_dir():
                raise Failure("npm left out `%s`: check the network, and run this again" % name)
            facts = {"package": self.relative(path)}
            program = first_of(entry.get("bin", {}), name.rsplit("/", 1)[-1])
            if program:
                facts["command"] = self.relative(self.directory / "node_modules" / ".bin" / program)
            found["npm:%s@%s" % (name, entry["version"])] = facts
        return found

    def relative(self, path):
        return path.relative_to(self.target).as_posix()


class PythonPart:
    """The packages of one requirements file, in a virtual environment of their own."""

    def __init__(self, source, target, settings, requirements):
        self.target = target
        self.name = requirements.stem.replace("requirements", "python")
        self.what = "PyPI packages (%s)" % self.name
        self.directory = target / self.name
        self.requirements = requirements
        self.files = [requirements.with_suffix(".in"), requirements]
        self.oldest, self.newest = (version_of(text) for text in settings["python"])
        self.base = None

    def check(self):
        span = "%s to %s" % (dotted(self.oldest), dotted(self.newest))
        minors = range(self.newest[1], self.oldest[1] - 1, -1)
        for program in [sys.executable] + ["python3.%d" % minor for minor in minors]:
            version = output_of([program, "-c", "import sys; print(sys.version.split()[0])"])
            if version is None or not self.oldest <= version_of(version)[:2] <= self.newest:
                continue
            if output_of([program, "-c", "import venv, ensurepip; print(ensurepip.version())"]) is None:
                advice = "install it (package python3-venv on Debian and Ubuntu), and run this again"
                raise Missing("Python %s has no venv module: %s" % (version, advice))
            self.base = program
            return
        raise Missing("no Python from %s is on the PATH: install one, and run this again" % span)

    def install(self, step, log):
        names = set(re.findall(r"^([\w.-]+)[^=\n]*==", self.requirements.read_text(), re.MULTILINE))
        run([self.base, "-m", "venv", str(self.directory)], step, log, self.target, NOTHING, len(names))
        python = self.directory / "bin" / "python"
        command = [str(python), "-m", "pip", "install", "--require-hashes", "--only-binary", ":all:"]
        command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
        command += ["--retries", "2", "-r", str(self.requirements)]
        run(command, step, log, self.target, r"^Collecting ([\w.-]+)", len(names))
        return "%d packages" % len(self.distributions())

    def distributions(self):
        found = {}
        for metadata in self.directory.glob("lib/python*/site-packages/*.dist-info"):
            name, version = metadata.name[: -len(".dist-info")].rsplit("-", 1)
            found[canonical(name)] = (version, metadata)
        return found

    def installed(self):
        found = {}
        present = self.distributions()
        for name in re.findall(r"^([\w.-]+)==", self.files[0].read_text(), re.MULTILINE):
            if canonical(name) not in present:
                raise Failure("pip left out `%s`: delete %s, and run this again" % (name, self.directory))
            version, metadata = present[canonical(name)]
            facts = {"python": self.relative(self.directory / "bin" / "python")}
            programs = console_scripts(metadata / "entry_points.txt")
            program = first_of(programs, name)
            if program:
                facts["command"] = self.relative(self.directory / "bin" / program)
            found["pypi:%s@%s" % (name, version)] = facts
        return found

    def relative(self, path):
        return path.relative_to(self.target).as_posix()


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = parse_arguments()
    source = arguments.source_dir.resolve()
    target = arguments.target_dir.resolve()
    settings = read_json(source / "install.json")
    parts = parts_of(source, target, settings)
    done = "%s are installed" % settings["title"]

    if is_complete(target, parts):
        print(done)
        return 0
    claim(target)
    with open(target / ".lock", "w") as lock:
        wait_for(lock)
        # The one we waited for may have done the work.
        if is_complete(target, parts):
            print(done)
            return 0
        # If this process is killed, npm or pip go on for a while, and keep the lock.
        os.set_inheritable(lock.fileno(), True)
        left_out = install(target, parts)
    if left_out:
        print("warning: %s are installed without %s" % (settings["title"], ", ".join(left_out)))
    else:
        print(done)
    return 0


def parse_arguments():
    summary, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source_dir", nargs="?", type=Path, default=Path(__file__).parent)
    parser.add_argument("target_dir", type=Path)
    return parser.parse_args()


def parts_of(source, target, settings):
    parts = []
    if (source / "package.json").is_file():
        parts.append(NpmPart(source, target, settings))
    for requirements in sorted(source.glob("requirements*.txt"), key=lambda file: file.stem):
        parts.append(PythonPart(source, target, settings, requirements))
    if not parts:
        raise Failure("nothing to install in `%s`: name a directory with lock files" % source)
    return parts


def install(target, parts):
    """Installs each part that has no matching stamp. Returns what had to be left out."""
    (target / "installed.json").unlink(missing_ok=True)
    stamp = read_stamp(target)
    found = {}
    left_out = []
    with open(target / "install.log", "w", encoding="utf-8", errors="replace") as log:
        for number, part in enumerate(parts, 1):
            step = Step(number, len(parts), part.what)
            wanted = digest(part)
            if stamp.get(part.name) == wanted and is_intact(target, part):
                found.update(part.installed())
                step.end("already there")
                continue
            try:
                part.check()
                if stamp.pop(part.name, None):
                    write_json(target / "stamp.json", stamp)
                shutil.rmtree(part.directory, ignore_errors=True)
                part.directory.mkdir()
                summary = part.install(step, log)
                found.update(part.installed())
            except Missing as reason:
                step.end("left out: %s" % reason)
                left_out.append(part.what)
                continue
            except BaseException:
                step.end("failed")
                raise
            stamp[part.name] = wanted
            write_json(target / "stamp.json", stamp)
            step.end("%s in %d s" % (summary, step.seconds()))
    write_json(target / "installed.json", found)
    return left_out


def is_complete(target, parts):
    stamp = read_stamp(target)
    if any(stamp.get(part.name) != digest(part) for part in parts):
        return False
    try:
        return all_exist(target, read_json(target / "installed.json"))
    except Failure:
        return False


def is_intact(target, part):
    """Whether someone deleted a finished part, or the Python that it stands on."""
    try:
        return all_exist(target, part.installed())
    except Failure:
        return False


def all_exist(target, found):
    return all((target / path).exists() for facts in found.values() for path in facts.values())


def digest(part):
    """Names the wanted state of a part: its lock files, and where it stands.

    Virtual environments hold their own absolute path, so a moved one is redone.
    """
    state = hashlib.sha256(("%d\n%s\n" % (LAYOUT, part.directory)).encode())
    for file in part.files:
        state.update(file_bytes(file))
    return state.hexdigest()


def claim(target):
    """Makes the directory ours, or refuses one that holds something else."""
    if target.is_dir() and not (target / ".lock").exists():
        strangers = [name for name in os.listdir(target) if not name.startswith(".git")]
        if strangers:
            raise Failure("`%s` holds other files: name an empty or a new directory" % target)
    target.mkdir(parents=True, exist_ok=True)
    (target / ".lock").touch()
    (target / ".gitignore").write_text("*\n")


def wait_for(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waiting for another install into the same directory", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def run(command, step, log, directory, pattern, total):
    """Runs one program into the log, and shows how many different things it names."""
    log.flush()
    start = log.seek(0, os.SEEK_END)
    # Names each package as it comes, and asks no questions.
    environment = dict(os.environ, CI="1", PYTHONUNBUFFERED="1", PYTHONNOUSERSITE="1")
    environment.pop("PYTHONPATH", None)
    environment.pop("PYTHONHOME", None)
    try:
        process = subprocess.Popen(
            command,
            cwd=str(directory),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            close_fds=False,
        )
    except OSError as error:
        raise Failure("cannot start `%s`: %s" % (command[0], error.strerror))
    try:
        code = None
        while code is None:
            try:
                code = process.wait(timeout=0.25)
            except subprocess.TimeoutExpired:
                said = log_from(log, start)
                step.show(len(set(re.findall(pattern, said, re.MULTILINE))), total)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if code != 0:
        raise Failure(explain(log_from(log, start), log.name, command[0]))


def log_from(log, start):
    with open(log.name, "rb") as reader:
        reader.seek(start)
        return reader.read().decode(errors="replace")


def explain(said, log_name, program):
    for pattern, advice in FAILURES:
        if re.search(pattern, said, re.IGNORECASE):
            return "%s (details: %s)" % (advice, log_name)
    return "`%s` failed: read %s, and run this again" % (Path(program).name, log_name)


def output_of(command):
    """The first line that a program prints, or nothing if it cannot run."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout.decode(errors="replace").strip()
    return text.splitlines()[0] if done.returncode == 0 and text else None


def version_of(text):
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def dotted(version):
    return ".".join(str(number) for number in version)


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def first_of(programs, preferred):
    """The program named like its package, else the first one."""
    return preferred if preferred in programs else next(iter(programs), None)


def console_scripts(path):
    programs = []
    section = None
    for line in path.read_text().splitlines() if path.is_file() else []:
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "console_scripts" and "=" in line:
            programs.append(line.split("=", 1)[0].strip())
    return programs


def runs_here(entry):
    """Whether npm installs this package of the lock file on this machine."""
    cpu = os.uname().machine.lower()
    cpu = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(cpu, cpu)
    # `libc` decides among the variants of one optional package; nearly all machines have glibc.
    mine = {"os": sys.platform, "cpu": cpu, "libc": "glibc"}
    return all(value in entry.get(key, value) for key, value in mine.items())


def read_stamp(target):
    try:
        return json.loads((target / "stamp.json").read_text())
    except (OSError, ValueError):
        return {}


def read_json(path):
    try:
        return json.loads(file_bytes(path))
    except ValueError as error:
        raise Failure("`%s` is not valid JSON: %s" % (path, error))


def file_bytes(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise Failure("cannot read `%s`: %s" % (path, error.strerror))


def write_json(path, value):
    """Replaces the file in one step, so no reader sees half of it."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
    os.replace(draft, path)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        message = str(failure)
    except KeyboardInterrupt:
        message = "interrupted: run this again to install the rest"
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = FAILURES[0][1]
        else:
            message = "cannot write `%s`: %s" % (error.filename, error.strerror)
    print("error: " + message, file=sys.stderr)
    sys.exit(1)
