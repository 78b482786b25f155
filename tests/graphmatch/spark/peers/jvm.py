"""Java programs for tests, which end with this process.

Each runs in its own Java process behind a py4j gateway, through which tests use its classes. It
ends when its standard input closes, and so with this process in any case.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]

from graphmatch.spark.java import java_home
from tests.graphmatch.spark.peers.jars import SPARK_HOME, SPARK_JARS, PeerError, java

_SECONDS = 60


class Jvm:
    """A Java process with some jars, whose classes tests can use.

    Parameters
    ----------
    classpath
        Jars, folders, and folders with ``/*``.
    folder
        Its working folder; output goes to ``java.log`` there.
    options
        Java options: memory, properties.
    environment
        Changes to this process's environment.

    Attributes
    ----------
    view
        ``view.java.lang.System`` and so on.
    process
        The process, which tests can kill.

    Raises
    ------
    PeerError
        If it does not start.
    """

    def __init__(
        self,
        classpath: Sequence[Path | str],
        folder: Path,
        *,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        (py4j,) = SPARK_JARS.glob("py4j-*.jar")
        self._log = folder / "java.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(str(java()), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options),
                    *("-cp", os.pathsep.join(map(str, (*classpath, py4j)))),
                    *("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
                ],
                cwd=folder,
                env=os.environ | dict(environment or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # An interrupt must reach only this process.
            )
        said = self.process.stdout
        assert said is not None
        port, token = said.readline().strip(), said.readline().strip()
        if not port.isdigit():
            said.close()
            self.kill()
            raise PeerError(f"Java does not start:\n{self.log()[-2000:]}")
        threading.Thread(target=self._copy, daemon=True).start()
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(
                port=int(port),
                auth_token=token.decode(),
                auto_convert=True,
                enable_memory_management=False,  # A killed process cannot free objects.
            )
        )
        self.view: Any = self._gateway.jvm

    def _copy(self) -> None:
        """Copy its output to the log, because a full pipe would block it."""
        assert self.process.stdout is not None
        with self._log.open("ab") as log, self.process.stdout as said:
            shutil.copyfileobj(said, log)

    def strings(self, *texts: str) -> Any:
        """Return an array of strings."""
        array = self._gateway.new_array(self.view.java.lang.String, len(texts))
        for place, text in enumerate(texts):
            array[place] = text
        return array

    def run(self, main: str, *arguments: str) -> None:
        """Run a main class in its own thread."""
        lang, invoke = self.view.java.lang, self.view.java.lang.invoke
        of = lang.Class.forName
        takes = invoke.MethodType.methodType(lang.Void.TYPE, of("[Ljava.lang.String;"))
        found = invoke.MethodHandles.publicLookup().findStatic(of(main), "main", takes)
        given = self._gateway.new_array(lang.Object, 1)
        given[0] = self.strings(*arguments)
        bound = invoke.MethodHandles.insertArguments(found, 0, given)
        runnable = of("java.lang.Runnable")
        lang.Thread(invoke.MethodHandleProxies.asInterfaceInstance(runnable, bound)).start()

    def log(self) -> str:
        """Return its output."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """Kill it as ``kill -9`` does, without flushing."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it, and let it clean up."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if hasattr(self, "_gateway"):
            self._gateway.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(_SECONDS)
        assert self.process.stdin is not None
        self.process.stdin.close()


@contextmanager
def temporary(prefix: str) -> Iterator[Path]:
    """Yield a folder that is deleted afterwards, including late files."""
    with TemporaryDirectory(prefix=f"{prefix}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def spark_environment() -> dict[str, str]:
    """Return the environment variables of Spark's own programs."""
    root = str(Path(__file__).parents[4])
    return {
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java_home(os.environ)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep),
    }
