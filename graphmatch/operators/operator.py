"""What an operator is: a Python function with an IRI, and what has to be known to call it.

As a function of SPARQL it gives a truth or a value::

    FILTER(op:about(?text, news:Climate))
    BIND(op:score(?text, "x") AS ?score) FILTER(?score > 0.8)
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pyoxigraph import Literal, NamedNode

from semantic.errors import GraphMatchError, InputError, Place, Problem, pip_install
from semantic.terms import Term

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECONDS = 10.0
"""How long a call may take that says nothing else."""
_GROUP = "graphmatch.operators"


class Index(Protocol):
    """Decides the calls of one operator for all subscriptions together.

    It holds the constants with which subscriptions call the operator, and is asked with an
    argument that comes from a publication. The calls of its methods follow each other, and
    publications wait for them; `matches` must not change the engine.
    """

    def add(self, constants: Sequence[Term]) -> int:
        """Take the constants of some call in; return a number of theirs, a small one.

        Raises
        ------
        ValueError
            When they mean nothing to the operator.
        """

    def remove(self, key: int) -> None:
        """Forget constants; their number may be given again."""

    def matches(self, argument: Term) -> NDArray[np.intp]:
        """Return the numbers of the constants for which the call is true."""


class Operator:
    """A function that subscriptions call.

    Parameters
    ----------
    iri
        What subscriptions call it.
    function
        Plain or ``async``. It gets the arguments as pyoxigraph's terms; returns a truth, a number,
        a text or a term.
    cost
        Seconds of a call, as long as nothing was measured.
    version
        Of the function; answers are kept, and measurements saved, by version.
    pure
        Whether a call with equal arguments always gives the same, so that answers are kept
        across publications.
    batch
        How many calls are made at once. A plain function is then called with a list of tuples of
        arguments, and returns as many results; of an ``async`` one so many calls run together.
    timeout
        Seconds of a call, after which it is unknown. With ``None`` a plain function is called on
        the thread that matches: cheaper by some 20 µs, and nothing can stop it.
    processes
        Whether it runs in another process, which is killed when it takes too long. It has to be
        importable by module and name.
    publication
        Whether its first argument is the `Publication`; then it is not pure.
    index
        Makes an index over the constants of all subscriptions.

    Raises
    ------
    InputError
        When something of it makes no sense.
    """

    def __init__(
        self,
        iri: str,
        function: Callable[..., Any],
        *,
        cost: float = 0.01,
        version: str = "",
        pure: bool = True,
        batch: int | None = None,
        timeout: float | None = SECONDS,
        processes: bool = False,
        publication: bool = False,
        index: Callable[[], Index] | None = None,
    ) -> None:
        def refuse(what: str, remedy: str) -> InputError:
            return InputError(Problem(what, Place(iri), remedy))

        try:
            NamedNode(iri)
        except ValueError:
            raise refuse("the name of an operator is no absolute IRI", "Name it.") from None
        if iri.startswith(("urn:graphmatch:", "http://www.w3.org/2001/XMLSchema#")):
            raise refuse("this IRI is taken", "Choose one of your own.")
        if not cost > 0 or (timeout is not None and not timeout > 0):
            raise refuse("a cost or a timeout is not above zero", "Give seconds.")
        if batch is not None and batch < 1:
            raise refuse("a batch is below one", "Give a number of calls.")
        if processes and (publication or inspect.iscoroutinefunction(function)):
            raise refuse(
                "what is async or gets the publication runs in no other process",
                "Leave `processes` out.",
            )
        self.iri, self.function = iri, function
        self.cost, self.version = cost, version
        self.pure = pure and not publication
        self.batch, self.timeout, self.processes = batch, timeout, processes
        self.publication, self.index = publication, index
        self.is_async = inspect.iscoroutinefunction(function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function itself."""
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<Operator {self.iri}>"

    @property
    def row(self) -> tuple[str, bool]:
        """The IRI, and whether there is an index."""
        return self.iri, self.index is not None


def term_of(result: object) -> Term:
    """Return the result of a call as a term.

    Raises
    ------
    TypeError
        If it cannot be one.
    """
    if isinstance(result, Literal | NamedNode):
        return result
    if isinstance(result, bool | int | float | str):
        return Literal(result)
    if hasattr(result, "item"):  # NumPy's numbers
        return term_of(result.item())
    kind = type(result).__name__
    raise TypeError(f"returned a {kind}, which is no truth, number, text, IRI or literal")


def operator(
    iri: str,
    *,
    cost: float = 0.01,
    version: str = "",
    pure: bool = True,
    batch: int | None = None,
    timeout: float | None = SECONDS,
    processes: bool = False,
    publication: bool = False,
    index: Callable[[], Index] | None = None,
) -> Callable[[Callable[..., Any]], Operator]:
    """Make a function an operator; the parameters are those of `Operator`.

    Examples
    --------
    >>> @operator("urn:op:longer", cost=1e-6, timeout=None)
    ... def longer(text, length):
    ...     return len(text.value) > int(length.value)
    >>> longer(Literal("abc"), Literal(2))
    True
    """

    def made(function: Callable[..., Any]) -> Operator:
        return Operator(
            iri,
            function,
            cost=cost,
            version=version,
            pure=pure,
            batch=batch,
            timeout=timeout,
            processes=processes,
            publication=publication,
            index=index,
        )

    return made


def needed(module: str, extra: str) -> Any:
    """Return a library that an operator needs.

    Raises
    ------
    MissingOperatorError
        When it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        remedy = f"Install it: {pip_install(extra)}"
        what = f"this operator needs {module}, which is not installed"
        raise MissingOperatorError(Problem(what, Place(module), remedy)) from error


class MissingOperatorError(GraphMatchError):
    """An operator that cannot be loaded."""


def load_operators(names: Iterable[str]) -> list[Operator]:
    """Return operators by their names, each once.

    Parameters
    ----------
    names
        ``module:name`` or ``file.py:name``, of an operator, of what makes one, or of a list of
        these; modules of the working directory, too. Or the name of an entry point of the group
        ``graphmatch.operators``.

    Raises
    ------
    MissingOperatorError
        When there is none of that name.

    Examples
    --------
    Needs ``graphmatch[geo]``::

        load_operators(["graphmatch.operators.within:Within"])
    """
    found: dict[str, Operator] = {}
    for name in names:
        for one in _operators(_named(name), name):
            found[one.iri] = one
    return list(found.values())


def _named(name: str) -> object:
    remedy = "Write module:name, or install the package that has an entry point of this name."
    module, _, attribute = name.rpartition(":")
    try:
        found: object
        if not module:
            return _entry_point(name, remedy)
        if module.endswith(".py"):
            found = _file(Path(module))
        else:
            here = str(Path.cwd())
            if here not in sys.path:
                sys.path.insert(0, here)
            found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except GraphMatchError:
        raise
    except (Exception, SystemExit) as error:
        why = str(error) if isinstance(error, ImportError | OSError) else repr(error)
        problem = Problem(f"it cannot be loaded: {why}"[:500], Place(name), remedy)
        raise MissingOperatorError(problem) from error
    return found


def _entry_point(name: str, remedy: str) -> object:
    from importlib.metadata import entry_points

    points = entry_points(group=_GROUP, name=name)
    if not points:
        raise MissingOperatorError(Problem("no operators have this name", Place(name), remedy))
    return next(iter(points)).load()


def _file(path: Path) -> object:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _operators(found: object, name: str) -> list[Operator]:
    remedy = "Make it a function under @operator, or a list of such."
    problem = Problem("it is no operator", Place(name), remedy)
    if callable(found) and not isinstance(found, Operator):
        try:
            found = found()
        except GraphMatchError:
            raise
        except Exception as error:
            what = f"it is no operator, and calling it makes none: {error!r}"[:500]
            raise MissingOperatorError(Problem(what, Place(name), remedy)) from error
    several = list(found) if isinstance(found, list | tuple) else [found]
    operators = [one for one in several if isinstance(one, Operator)]
    if not operators or len(operators) < len(several):
        raise MissingOperatorError(problem)
    return operators
