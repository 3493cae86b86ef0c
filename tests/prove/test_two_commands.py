"""The two README commands on a machine with Python and make and nothing else (no Java).

A fresh clone, in a folder with a space in its name, with empty package and jar caches; then both
commands once more with the network cut.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = ("java", "javac", "keytool", "spark-submit", "pyspark")
LOOPBACK_UP = (
    "import fcntl, socket, struct\n"
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "fcntl.ioctl(s, 0x8914, struct.pack('16sh22x', b'lo', 0x49))\n"
)

pytestmark = [pytest.mark.prove, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fresh") / "a new clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home without caches and a path without Java."""
    tools = tmp_path_factory.mktemp("tools")
    for folder in ("/usr/local/bin", "/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if tool.name not in HIDDEN and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    dropped = ("JAVA_HOME", "SPARK_HOME", "VIRTUAL_ENV", "PYTHONPATH", "DELTAWORKS_CACHE")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    home = tmp_path_factory.mktemp("home")
    return {**kept, "PATH": str(tools), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}


def make(
    target: str, clone: Path, environment: dict[str, str], *, offline: bool = False
) -> subprocess.CompletedProcess[str]:
    python = Path(sys.base_prefix) / "bin" / "python3"
    command = ["make", target, f"PYTHON={python}"]
    if offline:
        script = f"import os, sys\n{LOOPBACK_UP}os.execvp(sys.argv[1], sys.argv[1:])\n"
        command = ["unshare", "-n", str(python), "-c", script, *command]
    return subprocess.run(
        command, cwd=clone, env=environment, text=True, capture_output=True, check=False
    )


def test_java_is_hidden(environment: dict[str, str]) -> None:
    assert shutil.which("java", path=environment["PATH"]) is None


def test_the_demo_runs_in_a_fresh_clone(clone: Path, environment: dict[str, str]) -> None:
    done = make("demo", clone, environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Try next" in done.stdout
    assert "download" in done.stdout


def test_the_tests_pass_in_a_fresh_clone(clone: Path, environment: dict[str, str]) -> None:
    done = make("test", clone, environment)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


@pytest.mark.parametrize("target", ["demo", "test"])
def test_both_work_again_with_no_network(
    clone: Path, environment: dict[str, str], target: str
) -> None:
    probe = subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True)
    if probe.returncode != 0:
        pytest.skip("this user may not make a network namespace")
    done = make(target, clone, environment, offline=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
