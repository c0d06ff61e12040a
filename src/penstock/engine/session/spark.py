"""The Spark session of a project: is Java there, sensible settings, and a quiet terminal.

A run is given a function that starts the session, so that what needs no Spark never starts it. A
script with ``SET spark...`` gets a session of its own, so that no other step sees the setting.

Report what a starting session waits for: at once, and again every few seconds.

A cluster's master may be down, or have no room: Spark then tries for a minute or for ever, and
logs that where nobody looks.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from penstock.engine.session.class_archive import OPTIONS, ClassArchive, archive_of, with_archive
from penstock.errors import ConfigError, EnvironmentMissing, SparkLost
from penstock.events import EventSink, SparkStarted, SparkStarting, SparkWaiting
from penstock.model.query.query import Query
from penstock.settings.config import SparkSettings
from penstock.spark.memory import Machine, MemoryBudget, budget_of, require_memory, this_machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.destinations.destination import Destination

MINIMUM_JAVA = 17
CLIENT = "SPARK_CONNECT_MODE_ENABLED"  # set by PySpark: the sessions of this process are Connect's
REMOTE = "SPARK_REMOTE"  # the address that SparkSession.builder connects to
_WARM = ";penstock-warm="  # in that address: it is that of a warm server
_INSTALL = (
    "install Java 17 or 21 (Debian, Ubuntu: `apt install openjdk-17-jre-headless`; macOS: "
    "`brew install openjdk@17`; others: https://adoptium.net) and put it on PATH or set JAVA_HOME"
)
_PROBE = 3.0  # seconds that a server may take to answer by TLS
# Said by the JVM itself, before any logging is configured; Spark always loads that module.
_JVM_CHATTER = (b"WARNING: Using incubator modules", b"NOTE: Picked up JDK_JAVA_OPTIONS")


def start_session(settings: SparkSettings, name: str) -> SparkSession:
    """The session of a project: the running one, or a new one. Seconds when new.

    Raises EnvironmentMissing when Java or PySpark is not there, and ConfigError when the settings
    are such that Spark does not start.
    """
    require(settings)
    remote = _is_remote(settings)
    archive = None if remote else class_archive(settings)
    try:
        from pyspark.sql import SparkSession

        from penstock.spark.session import quiet
    except ImportError as error:
        raise EnvironmentMissing(
            f"PySpark cannot be imported: {error}", hint="pip install 'pyspark>=4.3,<5'"
        ) from None
    quiet()
    builder = SparkSession.builder.appName(name)
    if remote:
        builder = builder.remote(str(settings.master))
    conf = session_conf(settings)
    for key, value in with_archive(conf, archive).items():
        builder = builder.config(key, value)
    try:
        if remote:
            _require_tls(settings)
            return builder.getOrCreate()
        _leave_connect()
        if has_session():
            return builder.getOrCreate()
        # Else PATH's python3 runs the tasks' Python, which need not have what this one has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        with _filtered_stderr():
            try:
                return builder.getOrCreate()
            except Exception as error:
                if "JAVA_GATEWAY_EXITED" not in str(error) or archive is None:
                    raise
                # With a broken archive it ends before it can say why; else it fails once more.
                archive.discard()
                return builder.config(OPTIONS, conf[OPTIONS]).getOrCreate()
    except ConfigError:
        raise
    except Exception as error:
        raise _not_started(error, settings) from error


def class_archive(settings: SparkSettings) -> ClassArchive | None:
    """Return where the archive of Spark's classes is, for a Spark of this machine."""
    java = find_java(settings)
    return None if java is None else archive_of(settings, java)


def has_session() -> bool:
    """Return whether this process has a session that is its own, whoever started it."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return type(SparkSession.getActiveSession()) is SparkSession


def _require_tls(settings: SparkSettings) -> None:
    """Raise ConfigError where a client with a token would wait in vain for the server to answer by
    TLS: it uses that for every host but the word ``localhost``.
    """
    place = re.match(r"sc://([^/:]+|\[[^\]]+\])(?::(\d+))?/;.*\btoken=", settings.master or "")
    if place is None or place[1] == "localhost":
        return
    import socket
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # Spark verifies it
    try:
        plain = socket.create_connection((place[1].strip("[]"), int(place[2] or 15002)), _PROBE)
    except OSError:
        return  # nobody is there: Spark says so
    try:
        with plain, context.wrap_socket(plain):
            pass
    except OSError:
        raise ConfigError(
            f"the server at {place[1]} does not answer by TLS, which Spark requires of it as the "
            "address has a token",
            location=settings.origin,
            hint="for a server on this machine write sc://localhost, which goes without TLS; put "
            "one that is elsewhere behind a proxy with TLS",
        ) from None


def warm_address(port: int, key: str) -> str:
    """Return the address of a warm server for `REMOTE`: it marks the server, and has no token.

    With it ``SparkSession.builder.getOrCreate()`` returns the warm session of the process.
    """
    return f"sc://localhost:{port}/{_WARM}{key}"


def is_warm_address(address: str) -> bool:
    """Return whether `warm_address` made an address, in this process or in a parent of it."""
    return _WARM in address


def _leave_connect() -> None:
    """Let this process have a session of its own, where another one that it comes from was a client
    of Spark Connect. Raises ConfigError where this one is: PySpark has one kind in a process.
    """
    address = os.environ.get(REMOTE)
    if CLIENT not in os.environ or (address is not None and not is_warm_address(address)):
        return
    if "pyspark.sql.connect.session" in sys.modules:
        raise ConfigError(
            "this process has a session of a Spark server, and can start none of its own",
            hint="use warm=True, or another process",
        )
    del os.environ[CLIENT]
    os.environ.pop(REMOTE, None)


def _not_started(error: Exception, settings: SparkSettings) -> ConfigError:
    from penstock.spark.failures import explain, java_cause

    where = f" with the master {called(settings.master)!r}" if settings.master else ""
    if "UNAUTHENTICATED" in str(error):
        return ConfigError(
            f"Spark does not start{where}: the server refused the token",
            location=settings.origin,
            hint="write the server's token in spark.master: sc://HOST:PORT/;token=...",
        )
    explained = explain(error)
    cause = explained.message
    if isinstance(explained, SparkLost):  # it has not even begun to work
        cause, master = java_cause(str(error)), called(settings.master)
        cause = cause if master is None else f"{cause.rstrip('.')}; {standing(master)}"
    return ConfigError(
        f"Spark does not start{where}: {cause.removeprefix('Spark: ')}",
        location=settings.origin,
        hint="correct [spark] in penstock.toml; without it Spark runs in this process",
    )


def is_alive(session: SparkSession) -> bool:
    """Return whether a session of `start_session` can still be used."""
    from pyspark.sql import SparkSession

    try:
        if type(session) is not SparkSession:  # Spark Connect's
            return bool(session.version)
        # Only the thread that made it knows it as active; in others, run a small job.
        return SparkSession.getActiveSession() is not None or session.range(1).count() == 1
    except Exception:  # whatever the error says, the session is of no use
        return False


def end(session: SparkSession) -> None:
    """Forget a session that is no longer alive, so that `start_session` starts another.

    PySpark (4.3) continues with the Java process that it knows, even when that has ended; it has no
    public way to reset that, so this function is the only one to touch PySpark's internals.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with contextlib.suppress(Exception):
        session.stop()
    gateway = SparkContext._gateway
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        with contextlib.suppress(Exception):
            gateway.proc.stdin.close()  # the process ends with its input
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def require(settings: SparkSettings) -> None:
    """Raise EnvironmentMissing when Spark would run on this machine and it has no Java, and
    ConfigError where it has too little memory.
    """
    if not _is_remote(settings):
        require_java(settings)
        require_memory(settings, this_machine())


def _is_remote(settings: SparkSettings) -> bool:
    return bool(settings.master and settings.master.startswith("sc://"))


def session_conf(settings: SparkSettings, machine: Machine | None = None) -> dict[str, str]:
    """The configuration of the session: the project's settings override ours.

    ``machine`` is the one that Spark runs on, by default this one.
    """
    if _is_remote(settings):
        return dict(settings.conf)
    machine = machine or this_machine()
    budget = budget_of(settings, machine)
    master = settings.master or _local(machine, budget)
    local = re.match(r"local\b", master) is not None
    log = Path(__file__).with_name("log4j2.properties" if local else "log4j2-cluster.properties")
    conf = {
        "spark.master": master,
        # Neither its progress bars nor its log run through what Penstock prints.
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()}",
        "spark.sql.session.timeZone": "UTC",
        # Texts stay as written, in Python steps, too: '${env:HOME}' is not the environment's value.
        "spark.sql.variable.substitute": "false",
        # Spark compiles generated code, some 10 ms a class, and caches the classes by its text. A
        # run of eight steps has about a hundred, the default size of the cache: those of the first
        # step are evicted before the next run.
        "spark.sql.codegen.cache.maxEntries": "1000",
    }
    if local:
        conf |= {
            "spark.ui.enabled": "false",
            # Otherwise each column function makes three more calls to the JVM, for stack traces
            # that our messages do not show.
            "spark.python.sql.dataFrameDebugging.enabled": "false",
            # A broadcast within one process crosses no network: compressing it and checking it
            # only takes time, a third of a second in a merge of a million rows.
            "spark.broadcast.compress": "false",
            "spark.broadcast.checksum": "false",
            "spark.driver.host": "localhost",  # no look-up of the machine's own name
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(_local_threads(master, machine)),
            **(budget.conf() if budget else {}),
        }
    return conf | dict(settings.conf)


def _local(machine: Machine, budget: MemoryBudget | None) -> str:
    """A thread a core, which Java counts as we do, unless there is no memory for so many."""
    if budget is None or budget.tasks >= machine.cores:
        return "local[*]"
    return f"local[{budget.tasks}]"


def _local_threads(master: str, machine: Machine) -> int:
    threads = re.match(r"local\[(\d+)", master)
    if threads:
        return int(threads[1])
    return machine.cores if "*" in master else 1


def require_java(settings: SparkSettings) -> None:
    """Raise EnvironmentMissing with what to install, before anything else happens."""
    java = find_java(settings)
    if java is None:
        raise EnvironmentMissing("Spark needs Java, and none was found", hint=_INSTALL)
    version = _java_version(java)
    if version is None:
        raise EnvironmentMissing(f"{java} does not answer `java -version`", hint=_INSTALL)
    if version < MINIMUM_JAVA:
        raise EnvironmentMissing(
            f"Spark needs Java {MINIMUM_JAVA} or newer; {java} is Java {version}", hint=_INSTALL
        )


def find_java(settings: SparkSettings) -> Path | None:
    """Return where Spark will look: JAVA_HOME when it is set, else PATH."""
    if settings.java_home:
        java = Path(settings.java_home) / "bin" / "java"
        if not java.exists():
            raise EnvironmentMissing(
                f"JAVA_HOME is {settings.java_home}, which holds no bin/java", hint=_INSTALL
            )
        return java
    java_on_path = shutil.which("java", path=settings.path)
    return Path(java_on_path) if java_on_path else None


def _java_version(java: Path) -> int | None:
    """The feature release. From the ``release`` file (no process), else by asking."""
    release = java.resolve().parent.parent / "release"
    with contextlib.suppress(OSError):
        if version := parse_java_version(release.read_text(encoding="utf-8", errors="replace")):
            return version
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
        return parse_java_version(answer.stderr + answer.stdout)
    return None


def parse_java_version(text: str) -> int | None:
    """17 of ``17.0.15``, 8 of ``1.8.0_392``; from a ``release`` file or ``java -version``."""
    release = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(release[1]) if release else None


@contextlib.contextmanager
def _filtered_stderr() -> Iterator[None]:
    """A JVM that starts in this context has a stderr without its fixed warnings; all else passes.

    Only the file descriptor that the child inherits is changed, and only while it starts.
    """
    with _STDERR:
        try:
            saved = os.dup(2)
        except OSError:  # no stderr at all: nothing to keep quiet
            yield
            return
        reader, writer = os.pipe()
        threading.Thread(target=_pass_on, args=(reader, saved), daemon=True).start()
        os.dup2(writer, 2, inheritable=True)
        os.close(writer)
        try:
            yield
        finally:
            os.dup2(saved, 2, inheritable=True)


def _pass_on(reader: int, target: int) -> None:
    """Until every writer is gone: the JVM lives as long as the session."""
    with os.fdopen(reader, "rb", closefd=True) as lines:
        for line in lines:
            if not line.startswith(_JVM_CHATTER):
                os.write(target, line)
    os.close(target)


def session_for(query: Query, session: SparkSession) -> SparkSession:
    """``session`` itself when the script sets nothing."""
    if not query.settings:
        return session
    own = session.newSession()
    for setting in query.settings:
        own.conf.set(setting.name, setting.value)
    return own


def lakes_for(session: SparkSession, lakes: Mapping[str, Destination]) -> dict[str, Destination]:
    """The same lakes, read and written by ``session``: DataFrames of two sessions do not mix."""
    return {name: lake.with_session(session) for name, lake in lakes.items()}


EVERY = 10.0  # seconds between two reports
_ANSWER = 2.0  # seconds in which a port is expected to answer
_PORTS = {"spark": 7077, "sc": 15002, "k8s": 443}
_STDERR = threading.Lock()  # file descriptor 2: threads that start Spark take turns with it
_ADDRESS = re.compile(r"(spark|sc|k8s)://(?:https?://)?([^/;?]+)")


@contextmanager
def told_start(settings: SparkSettings, sink: EventSink, every: float = EVERY) -> Iterator[None]:
    """Tell ``sink`` that a session starts, where it stands, that it has started, and with how much
    memory.
    """
    began, started = monotonic(), threading.Event()
    name = called(settings.master)
    budget = None if has_session() else budget_of(settings, this_machine())
    sink(SparkStarting(name))
    if name is not None:
        arguments = (name, sink, began, started, every)
        threading.Thread(target=_report, args=arguments, daemon=True).start()
    try:
        yield
    finally:
        started.set()
    memory: dict[str, Any] = {}
    if budget is not None:
        memory = {"heap": budget.heap, "memory": budget.total, "memory_of": budget.source}
    sink(SparkStarted(monotonic() - began, **memory))


def called(master: str | None) -> str | None:
    """A master without parameters, a token among them; None for a session of this process."""
    if master is None or re.match(r"local\b", master):
        return None
    return master.partition("/;")[0]


def _report(
    master: str, sink: EventSink, began: float, started: threading.Event, every: float
) -> None:
    while not started.wait(every):
        state = standing(master)
        if not started.is_set():
            sink(SparkWaiting(master, monotonic() - began, state))


def standing(master: str) -> str:
    """Return whether the master can be reached, as far as its address says."""
    address = _ADDRESS.match(master)
    if address is None:
        return "it has not given the session its resources yet"
    silent = [each for each in address[2].split(",") if not _answers(each, _PORTS[address[1]])]
    if silent:
        return f"nothing answers at {', '.join(silent)}"
    return f"{address[2]} answers; the session is not ready yet"


def _answers(address: str, port: int) -> bool:
    host, _, own = address.rpartition(":")
    try:
        with socket.create_connection((host or own, int(own) if host else port), _ANSWER):
            return True
    except (OSError, ValueError):
        return False
