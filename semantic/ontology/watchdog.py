"""A small program that runs another one, and ends it when whoever started it is gone.

It is given a folder and a command. Its standard input is a pipe that its parent holds and never
writes to: the system closes the pipe when the parent ends, however that comes about (a signal that
nobody can catch, too). Then, or when the parent closes it, the command is killed with all that it
started, and the folder is removed. Else its exit status is the command's.

It is run as a file by itself, without the package, so that it starts quickly.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from threading import Event, Thread

_NOT_STARTED = 127
"""The exit status where there is no such program, as shells have it."""


def main(arguments: list[str]) -> int:
    """Run a command until it ends, or standard input does; return its exit status.

    Parameters
    ----------
    arguments
        The folder to remove when standard input ends, and the command.
    """
    folder, *command = arguments
    try:
        process = subprocess.Popen(  # noqa: S603 -- no shell
            command, stdin=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return _NOT_STARTED
    alone = Event()
    Thread(target=_guard, args=(process, alone), daemon=True).start()
    status = process.wait()
    if alone.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else 128 - status


def _guard(process: subprocess.Popen[bytes], alone: Event) -> None:
    while os.read(0, 1):
        pass
    alone.set()
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


if __name__ == "__main__":
    found = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(found)  # without waiting for the thread, which reads still
