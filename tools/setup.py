"""Make `.venv` ready: a virtual environment, the locked packages, this project, the jars.

Run by `make setup` with whatever Python the machine has. Only the standard library is used, and
the syntax stays old enough for the version check itself to be reached on an old Python.
"""

import sys

if sys.version_info < (3, 11):
    import shutil

    NEWER = [name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)]
    sys.exit(
        "setup: Python 3.11 or later is needed, and {} is {}.{}.\n  fix: {}".format(
            sys.executable or "this one",
            sys.version_info[0],
            sys.version_info[1],
            "run  make setup PYTHON={}".format(NEWER[0])
            if NEWER
            else "install a newer Python, then run  make setup PYTHON=python3.12",
        )
    )

import hashlib
import importlib.util
import json
import os
import queue
import re
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".deltaworks-setup.json"
LOG = VENV / "setup.log"
BUILD_LOCK = Path("requirements", "build.txt")
LOCK = Path("requirements", "lock.txt")
STAMPED_FILES = (BUILD_LOCK, LOCK, Path("pyproject.toml"))
JAR_LOCKS = (
    Path("src", "deltaworks", "engines", "spark", "versions.py"),
    Path("src", "deltaworks", "engines", "spark", "jars", "s3.py"),
    Path("src", "deltaworks", "engines", "spark", "jars", "connectors.py"),
)
QUIET_SECONDS = 10
TAIL_LINES = 15
DOWNLOAD = re.compile(r"\s*Downloading ([\w.]+-[\w.]+?)(?:-|\.tar).*\((\d.* MB)\)")
STEP = re.compile(r"\s*(?:Building wheel for .*: started|Installing collected)")

# Settings of an outer environment that would send packages somewhere else than `.venv`.
FOREIGN_VARIABLES = (
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_ROOT",
    "PIP_TARGET",
    "PYTHONHOME",
    "PYTHONPATH",
    "SPARK_HOME",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
)


class SetupError(Exception):
    """Something the user can fix; the message says how."""


def say(text: str) -> None:
    """Print one line now, even into a pipe."""
    print(text, flush=True)


def wanted_stamp() -> dict[str, str]:
    """What `.venv` must have been made from to be used as it is."""
    digest = hashlib.sha256()
    for name in STAMPED_FILES:
        digest.update((ROOT / name).read_bytes())
    return {
        "files": digest.hexdigest(),
        "folder": str(ROOT),
        "python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
    }


def read_stamp() -> dict[str, str]:
    """What the last complete setup wrote, or nothing."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(stamp: dict[str, str]) -> None:
    """Record a finished step; a crash before this line repeats the step."""
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")


def clean_environment() -> dict[str, str]:
    """The environment without what would redirect pip or Python."""
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    environment.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_USER="0", PYTHONNOUSERSITE="1")
    return environment


def run(what: str, *arguments: str) -> None:
    """Run a command; show its main lines, the time while it is quiet, its end if it fails."""
    say(f"setup: {what}")
    started = time.monotonic()
    child = subprocess.Popen(
        arguments,
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_pump, args=(child, lines), daemon=True).start()
    seen = _follow(lines, started)
    if child.wait() != 0:
        tail = "".join(f"    {line}\n" for line in seen[-TAIL_LINES:])
        raise SetupError(f"{what}: failed\n{tail}  all of it: {LOG.relative_to(ROOT)}")


def _pump(child: "subprocess.Popen[str]", lines: "queue.Queue[str | None]") -> None:
    """Move a child's output into a queue that can be waited on with a time limit."""
    for line in child.stdout or ():
        lines.put(line.rstrip())
    lines.put(None)


def _follow(lines: "queue.Queue[str | None]", started: float) -> list[str]:
    """Collect lines until the end, saying at least every ten seconds that work goes on."""
    seen: list[str] = []
    with LOG.open("a", encoding="utf-8") as log:
        while True:
            try:
                line = lines.get(timeout=QUIET_SECONDS)
            except queue.Empty:
                say(f"  ... still working, {time.monotonic() - started:.0f} s")
                continue
            if line is None:
                return seen
            seen.append(line)
            log.write(line + "\n")
            shown = headline(line)
            if shown:
                say(f"  {shown}")


def headline(line: str) -> str:
    """What a waiting person wants to see of a line of pip's, or nothing."""
    download = DOWNLOAD.match(line)
    if download:
        return f"downloading {download[1]} ({download[2]})"
    if STEP.match(line):
        return line.strip().partition(" (")[0].partition(":")[0]
    return ""


def check_venv_modules() -> None:
    """Refuse early, with the fix, where the system's Python comes without venv or pip."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if not missing:
        return
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    raise SetupError(
        f"this Python ({sys.executable}) has no {' and no '.join(missing)} module\n"
        f"  fix: on Debian or Ubuntu  sudo apt install python{version}-venv\n"
        "       elsewhere install Python with venv and pip, or  make setup PYTHON=/path/to/python3"
    )


def works(python: Path) -> bool:
    """Whether an interpreter starts and has pip."""
    if not os.access(python, os.X_OK):
        return False
    done = subprocess.run(
        [python, "-m", "pip", "--version"],
        env=clean_environment(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def make_venv(stamp: dict[str, str], wanted: dict[str, str]) -> None:
    """Create `.venv`, or keep the one that is there if it is whole and of this place and Python."""
    if VENV.exists() and not (VENV / "pyvenv.cfg").exists() and any(VENV.iterdir()):
        raise SetupError(
            "`.venv` is not a virtual environment\n  fix: move it away, then make setup"
        )
    foreign = any(stamp[key] != wanted[key] for key in ("folder", "python") if key in stamp)
    if not foreign and works(VENV_PYTHON) and venv_version() == wanted["python"]:
        say("setup: bringing .venv up to date; what is missing is downloaded")
        return
    check_venv_modules()
    why = "made for another folder or Python" if foreign else "new"
    say(f"setup: creating .venv ({why})")
    done = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", VENV],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not works(VENV_PYTHON):
        raise SetupError(
            f"python -m venv failed\n    {(done.stderr or done.stdout).strip()}\n"
            "  fix: on Debian or Ubuntu  sudo apt install python3-venv\n"
            "       else name another Python:  make setup PYTHON=/path/to/python3"
        )
    say("setup: what is not in pip's cache yet is downloaded now, about 740 MB in all:")
    say("  PySpark 450 MB, Arrow and Delta 110 MB, a Java runtime 35 MB,")
    say("  an S3 server for tests 48 MB, the rest 95 MB")
    say("  (1.6 GB on disk; one to five minutes the first time, PySpark is the slow part)")


def venv_version() -> str:
    """Which Python `.venv` runs, in the words of the stamp."""
    code = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    done = subprocess.run([VENV_PYTHON, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def install_packages() -> None:
    """Install exactly what the lock files name, then this project in place."""
    pip = (str(VENV_PYTHON), "-m", "pip", "install", "--progress-bar", "off")
    run("installing the build tools", *pip, "--require-hashes", "-r", str(BUILD_LOCK))
    run(
        "installing the locked packages",
        *(*pip, "--require-hashes", "--no-build-isolation", "--no-deps", "-r", str(LOCK)),
    )
    run(
        "installing deltaworks from this folder",
        *(*pip, "--no-index", "--no-deps", "--no-build-isolation", "--editable", "."),
    )


def jars_stamp() -> str:
    """Another one as soon as a jar of the lock is another one."""
    locks = b"".join((ROOT / name).read_bytes() for name in JAR_LOCKS)
    return hashlib.sha256(locks).hexdigest()


def fetch_jars() -> None:
    """Bring the jars into the user's cache, through the Ivy inside PySpark."""
    run(
        "fetching jars (35 MB, once per user)",
        *(str(VENV_PYTHON), "-m", "deltaworks", "jars", "fetch", "--all"),
    )


def keep_classes() -> None:
    """Let Spark start from an archive of its classes; without one it is slower, not broken."""
    what = "running a small job once, so that Spark starts sooner (200 MB on disk)"
    try:
        run(what, str(VENV_PYTHON), "-m", "deltaworks", "jars", "archive")
    except SetupError as problem:
        say(f"setup: {problem}\n  Spark works without it; make setup goes on")


def setup() -> None:
    """Do what is not done yet."""
    wanted = wanted_stamp()
    stamp = read_stamp()
    complete = {**wanted, "jars": jars_stamp()}
    if stamp == complete and os.access(VENV_PYTHON, os.X_OK):
        return
    started = time.monotonic()
    if {**stamp, "jars": ""} != {**wanted, "jars": ""} or not works(VENV_PYTHON):
        make_venv(stamp, wanted)
        STAMP.unlink(missing_ok=True)
        LOG.unlink(missing_ok=True)
        install_packages()
        write_stamp(wanted)
    fetch_jars()
    keep_classes()
    write_stamp(complete)
    say(f"setup: ready in {time.monotonic() - started:.0f} s; try  .venv/bin/deltaworks --help")


def main() -> int:
    """Exit 0 when everything is ready, 1 with the fix when not."""
    try:
        setup()
    except SetupError as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
