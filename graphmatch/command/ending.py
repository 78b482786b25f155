"""How a command ends: with a status, whatever happens to its output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

import typer


def ended(run: Callable[[], int]) -> NoReturn:
    """Run a command, and end with its status; an output that is closed early is no error."""
    try:
        status = run()
        sys.stdout.flush()
    except BrokenPipeError:
        status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
    except OSError as error:
        status = 2
        typer.echo(f"error    the output cannot be written: {error.strerror}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        status = 130
        typer.echo("interrupted", err=True)
    raise SystemExit(status)
