"""An operator: a Python function with an IRI and the options of its calls.

A query calls it as a SPARQL function that returns a truth or a value::

    FILTER(op:about(?text, news:Climate))
    BIND(op:score(?text, "x") AS ?score) FILTER(?score > 0.8)
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from pyoxigraph import Literal, NamedNode

from semantic.errors import GraphMatchError, InputError, Place, Problem, pip_install
from semantic.terms import Term

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECONDS = 10.0
"""Default time limit of a call."""


class OperatorIndex(Protocol):
    """Decides the calls of one operator for all subscriptions together.

    It stores the constants of the subscriptions' calls. The engine queries it with an argument from
    a publication. The engine calls one method at a time, and publications wait for it. `matches`
    must not change the engine.
    """

    def add(self, constants: Sequence[Term]) -> int:
        """Add the constants of a call; return a small number for them that is not in use.

        Raises
        ------
        ValueError
            If the operator cannot use them.
        """

    def remove(self, key: int) -> None:
        """Remove the constants with the number `key`, which `add` may reuse."""

    def matches(self, argument: Term) -> NDArray[np.intp]:
        """Return the numbers of the constants for which the call with this argument is true."""


class Operator:
    """A function that subscriptions call.

    Parameters
    ----------
    iri
        The name in queries.
    function
        Plain or ``async``. Its arguments are pyoxigraph terms. It returns a truth, a number, a
        text or a term.
    cost
        Expected seconds per call, until calls were measured.
    version
        The version of the function. Results are cached and measurements saved by version.
    pure
        Whether equal arguments always give equal results, so that results are cached for later
        publications.
    batch
        Maximum number of calls made together. A plain function then takes a list of tuples of
        arguments and returns as many results. Calls of an ``async`` function run concurrently.
    timeout
        Seconds after which a call fails. With ``None``, the thread that matches calls a plain
        function itself. This saves about 20 µs, but nothing can stop the call.
    publication
        Whether its first argument is the `Publication`. Then it is not pure.
    index
        Creates an index over the constants of all subscriptions.

    Raises
    ------
    InputError
        If an option is invalid.
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
        publication: bool = False,
        index: Callable[[], OperatorIndex] | None = None,
    ) -> None:
        def refuse(what: str, remedy: str) -> InputError:
            return InputError(Problem(what, Place(iri), remedy))

        try:
            NamedNode(iri)
        except ValueError:
            raise refuse(
                "the name of an operator is not an absolute IRI", "Give an absolute IRI."
            ) from None
        if iri.startswith(("urn:graphmatch:", "http://www.w3.org/2001/XMLSchema#")):
            raise refuse("this IRI is reserved", "Choose another one.")
        if not cost > 0 or (timeout is not None and not timeout > 0):
            raise refuse(
                "the cost or the timeout is not positive", "Give a positive number of seconds."
            )
        if batch is not None and batch < 1:
            raise refuse("the batch size is below one", "Give the maximum number of calls.")
        self.iri, self.function = iri, function
        self.cost, self.version = cost, version
        self.pure = pure and not publication
        self.batch, self.timeout = batch, timeout
        self.publication, self.index = publication, index
        self.is_async = inspect.iscoroutinefunction(function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function directly, without time limit and cache."""
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<Operator {self.iri}>"

    @property
    def row(self) -> tuple[str, bool]:
        """The operator's IRI, and whether it has an index."""
        return self.iri, self.index is not None


def term_of(result: object) -> Term:
    """Return the result of a call as a term.

    Raises
    ------
    TypeError
        If it is not a term, Boolean, number or string.
    """
    if isinstance(result, Literal | NamedNode):
        return result
    if isinstance(result, bool | int | float | str):
        return Literal(result)
    if hasattr(result, "item"):  # NumPy's numbers
        return term_of(result.item())
    kind = type(result).__name__
    raise TypeError(f"returned a {kind} instead of a Boolean, number, string, IRI or literal")


class OperatorOptions(TypedDict, total=False):
    """The options of `Operator`."""

    cost: float
    version: str
    pure: bool
    batch: int | None
    timeout: float | None
    publication: bool
    index: Callable[[], OperatorIndex] | None


def operator(
    iri: str, **options: Unpack[OperatorOptions]
) -> Callable[[Callable[..., Any]], Operator]:
    """Make a function an operator. The options are those of `Operator`.

    Examples
    --------
    >>> @operator("urn:op:longer", cost=1e-6, timeout=None)
    ... def longer(text, length):
    ...     return len(text.value) > int(length.value)
    >>> longer(Literal("abc"), Literal(2))
    True
    """
    return lambda function: Operator(iri, function, **options)


def needed(module: str, extra: str) -> Any:
    """Import and return a library that an operator needs; `extra` is the extra that installs it.

    Raises
    ------
    MissingOperatorError
        If the library is not installed.
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
    """Import operators by name and return them; of several with one IRI, only the last.

    Parameters
    ----------
    names
        ``module:name`` or ``file.py:name`` of an operator, of a function that returns one, or of a
        list of operators. Modules may be in the working directory.

    Raises
    ------
    MissingOperatorError
        If a name does not lead to operators, or cannot be imported.

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
    remedy = "Write module:name, or file.py:name."
    module, _, attribute = name.rpartition(":")
    if not module:
        raise MissingOperatorError(Problem("it does not name an operator", Place(name), remedy))
    try:
        found: object
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
    remedy = "Decorate a function with @operator, or name a list of operators."
    problem = Problem("it is not an operator", Place(name), remedy)
    if callable(found) and not isinstance(found, Operator):
        try:
            found = found()
        except GraphMatchError:
            raise
        except Exception as error:
            what = f"it is not an operator, and calling it failed: {error!r}"[:500]
            raise MissingOperatorError(Problem(what, Place(name), remedy)) from error
    several = list(found) if isinstance(found, list | tuple) else [found]
    operators = [one for one in several if isinstance(one, Operator)]
    if not operators or len(operators) < len(several):
        raise MissingOperatorError(problem)
    return operators
