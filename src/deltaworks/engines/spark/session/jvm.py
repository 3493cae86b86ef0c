"""Start and end the JVM behind a session, with all it prints going to a file."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import psutil

from deltaworks.engines.spark.errors.lost_jvm import has_died
from deltaworks.engines.spark.session.conf import command_line_conf
from deltaworks.errors import EngineError, StorageError
from deltaworks.log import ERROR_ECHOES
from deltaworks.redact import scrub

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_END_SECONDS = 20
_PRINTED_SECONDS = 1
_NOISE = re.compile(
    r"^\s*$|^\s+at |^\s*\.\.\. \d+ more|^WARNING: |^NOTE: |^Picked up |^Using Spark's default"
    r"|^Setting default log level|^To adjust logging level| (WARN|INFO|DEBUG) "
    r"|^Error occurred during initialization|^Error: Could not create the Java"
    r"|^Error: A fatal exception|Error initializing SparkContext"
)
_JAVA_PREFIX = re.compile(
    r'^(Exception in thread "[^"]*" |Caused by: )?([a-z]\w*\.)+[A-Z][\w$]*: |^Error: '
)
_LOG_PREFIX = re.compile(r"^[\d/: .-]+ ERROR \S+ ")


def launch(
    conf: Mapping[str, str], *, environment: Mapping[str, str], log_file: Path, hint: str
) -> SparkSession:
    """A session on a new JVM, or one line that says why there is none."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkException

    end_jvm()
    _silence_echoes()
    others = _children()
    log = _open_log(log_file)
    start = log.tell()
    printed = PrintedLog(log)
    with _environment(environment), _own_interrupts():
        try:
            return _start(conf, printed)
        except (PySparkException, Py4JError) as error:
            # Asked before the JVM ends, because the error's text lives in it.
            printed.settle(_PRINTED_SECONDS)
            reason = _reason(error, log_file, start)
            SparkContext._active_spark_context = None  # or it would be taken for one that works
            end_jvm()
            raise EngineError(
                f"Spark did not start: {reason}",
                hint=hint,
                context={"log_file": str(log_file)},
            ) from error
        except BaseException:
            _end_half_started(_children() - others)
            raise


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def _end_half_started(started: set[psutil.Process]) -> None:
    """End a JVM whose start was interrupted: it would wait forever for a Python that is gone."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None
    for process in started:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def end_jvm(wait_seconds: float | None = None) -> None:
    """End the JVM of this process, if there is one that no context uses."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    # Without a process of ours, Python was started by Spark and not the other way round.
    if gateway is None or process is None or SparkContext._active_spark_context is not None:
        return
    gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS if wait_seconds is None else wait_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    printed: PrintedLog | None = getattr(gateway, "printed", None)
    if printed is not None:  # else the JVM was started by somebody else
        printed.settle()


def forget_dead_jvm() -> None:
    """Let go of a JVM that has died, so that another can be started."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if not has_died():
        return
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def first_cause(log: str) -> str:
    """The first line of a failed start that says something, without Java's class names."""
    telling = [line for line in log.splitlines() if not _NOISE.search(line)]
    for line in sorted(telling, key=lambda line: _LOG_PREFIX.match(line) is None):
        return _JAVA_PREFIX.sub("", _LOG_PREFIX.sub("", line)).strip()
    return "it gave no reason"


def _open_log(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab", buffering=0)
    except OSError as error:
        raise StorageError(
            f"cannot write Spark's log {path}: {error.strerror}",
            hint="name a log file in a folder that can be written to",
        ) from error


def _start(conf: Mapping[str, str], printed: PrintedLog) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    try:
        if SparkContext._gateway is None:
            _launch_gateway(conf, printed)
    finally:
        printed.handed_over()
    # Secrets arrive only here, through the socket.
    settings = _filled_in(conf) if is_submitted(os.environ) else _spark_conf(conf)
    context = SparkContext(conf=settings, gateway=SparkContext._gateway)
    return SparkSession(context)


def _launch_gateway(conf: Mapping[str, str], printed: PrintedLog) -> None:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    # The JVM ignores SIGINT (PySpark sees to it), so that after Ctrl-C we can still
    # cancel its work; it ends when the pipe to this process closes.
    gateway = launch_gateway(  # type: ignore[no-untyped-call]
        _spark_conf(command_line_conf(conf)),
        popen_kwargs={"stdout": printed.end, "stderr": subprocess.STDOUT},
    )
    gateway.printed = printed
    SparkContext._gateway = gateway
    SparkContext._jvm = gateway.jvm


def _spark_conf(conf: Mapping[str, str]) -> SparkConf:
    from pyspark import SparkConf

    return SparkConf().setAll(list(conf.items()))


def is_submitted(environ: Mapping[str, str]) -> bool:
    """Whether `spark-submit` started this Python, so that there is a JVM already."""
    return "PYSPARK_GATEWAY_PORT" in environ


def _filled_in(conf: Mapping[str, str]) -> SparkConf:
    """What the command line of `spark-submit` says, and ours where it says nothing."""
    from pyspark import SparkConf

    said = SparkConf()
    for key, value in conf.items():
        said.setIfMissing(key, value)
    return said


def _reason(error: Exception, log_file: Path, start: int) -> str:
    from py4j.protocol import Py4JJavaError

    if isinstance(error, Py4JJavaError):
        message = str(error.java_exception.getMessage() or "")
        if message and "stopped SparkContext" not in message:
            return message.splitlines()[0]
    with log_file.open("rb") as log:
        log.seek(start)
        return first_cause(log.read().decode("utf-8", errors="replace"))


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep this process's answer to Ctrl-C.

    PySpark installs one that talks to the JVM from inside the signal handler; while a
    call is under way that fails, prints a traceback and cancels nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _silence_echoes() -> None:
    for name in ERROR_ECHOES:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    root = logging.getLogger()
    if _not_from_py4j not in root.filters:
        root.addFilter(_not_from_py4j)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    # On Ctrl-C py4j writes a traceback to the root logger; its own logger is quiet.
    return Path(record.pathname).parent.name != "py4j"


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process for a moment: PySpark takes them from nowhere else."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_SETTLE_SECONDS = 5


class PrintedLog:
    """The end of a pipe that a JVM prints into; a thread writes the rest to the log.

    Lines are scrubbed one by one before they reach the disk, so a run that fails or is killed
    leaves none behind. After the death of this process nobody reads, and nothing is written.
    """

    def __init__(self, log: IO[bytes]) -> None:
        self._log = log
        reading, self.end = os.pipe()
        self._thread = threading.Thread(
            target=self._copy, args=(reading,), name="spark-log", daemon=True
        )
        self._thread.start()

    def handed_over(self) -> None:
        """The JVM has the end now; when it dies, so does the pipe."""
        os.close(self.end)

    def settle(self, seconds: float = _SETTLE_SECONDS) -> None:
        """Wait until all that was printed is in the log, as far as the JVM has ended."""
        self._thread.join(seconds)

    def _copy(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as printed, self._log as log:
            for line in printed:
                text = scrub(line.decode("utf-8", errors="surrogateescape"))
                with suppress(OSError):  # on a full disk too, or the JVM would wait for a reader
                    log.write(text.encode("utf-8", errors="surrogateescape"))
