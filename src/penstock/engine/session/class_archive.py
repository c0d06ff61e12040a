"""The archive of Spark's classes, which Java maps into memory instead of loading each of them.

Loading and checking some 20,000 classes is most of what Spark does before its first rows. Java
(class data sharing) writes those that a process has loaded to a file when it ends, and a process
with the same Java and the same jars begins with them. Such a file is specific to both, and large;
`penstock.cli.prepare` builds it in the user's cache.

Java ignores an archive of other classes or another Java, and one that makes no sense; but one that
is cut off crashes it. So the length is part of the name: whatever has another one is not used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.session.warm_files import spark_version
from penstock.settings.config import SparkSettings
from penstock.spark.memory import is_local

OPTIONS = "spark.driver.extraJavaOptions"
_FORMAT = 2  # of the names, and of what makes an archive another one
_MOST = 2  # archives that stay: 180 MB each
_NAME = re.compile(r"spark-[0-9a-f]{16}-(\d+)\.jsa")
# Where Java cannot use an archive, it does without, and has nothing to say.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one Java and one Spark in a directory, whether or not it is there."""

    directory: Path
    key: str

    @classmethod
    def of(cls, directory: Path, java: Path) -> ClassArchive:
        """Return the archive for an executable of Java and this environment's PySpark."""
        java = java.resolve()
        release = ""
        with suppress(OSError, UnicodeDecodeError):
            release = (java.parent.parent / "release").read_text(encoding="utf-8")
        spec = importlib.util.find_spec("pyspark")
        home = Path(spec.origin).parent if spec and spec.origin else Path()
        jars = sorted((jar.name, jar.stat().st_size) for jar in home.glob("jars/*.jar"))
        parts = [_FORMAT, str(java), release, spark_version(), str(home), jars]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return cls(directory, digest[:16])

    @property
    def path(self) -> Path | None:
        """Return the file; None where there is none that is whole."""
        for path in self.directory.glob(f"spark-{self.key}-*.jsa"):
            match = _NAME.fullmatch(path.name)
            with suppress(OSError):
                if match and path.is_file() and path.stat().st_size == int(match[1]):
                    return path
        return None

    def keep(self, made: Path) -> Path:
        """Put a file of this directory in its place, and remove those that nobody may need."""
        place = self.directory / f"spark-{self.key}-{made.stat().st_size}.jsa"
        made.replace(place)
        files = [path for path in self.directory.glob("spark-*.jsa") if path != place]
        files.sort(key=lambda path: (self.key in path.name, -path.stat().st_mtime))
        for number, path in enumerate(files, 1):
            if number >= _MOST or self.key in path.name:
                path.unlink(missing_ok=True)
        return place

    def discard(self) -> None:
        """Remove the file, with which Java did not start."""
        for path in self.directory.glob(f"spark-{self.key}-*.jsa"):
            with suppress(OSError):
                path.unlink()


def writing(path: Path) -> str:
    """Return the options by which Java writes an archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={path} {_QUIET}"


def archive_of(settings: SparkSettings, java: Path) -> ClassArchive | None:
    """Return the archive that sessions with these settings may use; None where there is no cache,
    or Spark comes from elsewhere.
    """
    if settings.archives is None or not is_local(settings) or "SPARK_HOME" in settings.environ:
        return None
    return ClassArchive.of(settings.archives, java)


def with_archive(conf: Mapping[str, str], archive: ClassArchive | None) -> dict[str, str]:
    """Return ``conf``, with the archive in Java's options if there is one, and no other one."""
    options = conf.get(OPTIONS, "")
    path = None if archive is None else archive.path
    if path is None or "-Xshare" in options or "Archive" in options or " " in str(path):
        return dict(conf)
    return {**conf, OPTIONS: f"{options} -XX:SharedArchiveFile={path} {_QUIET}".strip()}
