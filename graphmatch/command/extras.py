"""What an ontology holds beside its terms: mapping functions, and the units of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from graphmatch.command.console import styled
from graphmatch.command.terms import View
from graphmatch.mapping.functions import Analysed, MappingFunctions
from semantic.terms import Mention, compact


def extra_lines(view: View) -> Iterator[Text]:
    """Yield the mapping functions and the base units, as lines."""
    if view.ontology.mapping:
        yield styled(("mapping functions", "bold"))
    for analysed in MappingFunctions(view.ontology.mapping):
        reads, adds = (", ".join(_written(view, of)) for of in (analysed.reads, analysed.adds))
        function = analysed.function
        yield styled("    ", function.name, f"  {reads} → {adds}", (f"  {function.comment}", "dim"))
    units = _base_units(view)
    if units:
        yield styled(("base units", "bold"))
    for attribute, unit in units.items():
        yield styled(f"    {attribute}  {unit}")


def extras_as_json(view: View) -> dict[str, object]:
    """Return them for JSON; the keys are those of docs/reference/command.md."""
    functions = [
        _function_as_json(view, function) for function in MappingFunctions(view.ontology.mapping)
    ]
    return {"mapping functions": functions, "base units": _base_units(view)}


def _base_units(view: View) -> dict[str, str]:
    found = view.ontology.units.declarations.base_units
    return {view.compact(attribute): view.compact(base.term) for attribute, base in found.items()}


def _function_as_json(view: View, analysed: Analysed) -> dict[str, object]:
    return {
        "name": analysed.function.name,
        "reads": list(_written(view, analysed.reads)),
        "adds": list(_written(view, analysed.adds)),
        "comment": analysed.function.comment,
    }


def _written(view: View, mentions: Iterable[Mention]) -> Iterator[str]:
    prefixes = view.ontology.prefixes
    for property_, object_ in mentions:
        written = "anything" if property_ is None else compact(property_, prefixes)
        yield written if object_ is None else f"{written} {compact(object_, prefixes)}"
