"""The text of a unit to what it means: a dimension, a factor, an offset.

How a text is understood, first to last: a currency; bytes (``B`` is a byte, alone and
with a prefix, where strict UCUM says bel); UCUM's spelling; pint's. pint and ucumvert
take a second to load, so the units that nearly everybody uses are in a table here, and
the libraries are loaded for the first one that is not; what a text means is remembered.
Neither is made for several threads, so one goes at a time.

A text comes from anybody. It is short (`Limits.unit_characters`), its exponents have
two digits at most, and pint's own spelling, which is evaluated as arithmetic, is let
through only as names with small powers.

Sources: UCUM, https://ucum.org/ucum; pint, https://pint.readthedocs.io/.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.units.currency import currency
from semantic.units.numbers import UnitError

_REMEDY = "Write it in UCUM, such as GBy, km/h, Cel or [in_i], or as pint does."
_BYTE_TERM = re.compile(r"(?<![A-Za-z\[])((?:[kKMGTPEZY]i?)?)B(?![A-Za-z\]\[])", re.ASCII)
_UCUM_FORM = re.compile(r"[!-~]+", re.ASCII)
_LONG_NUMBER = re.compile(r"[0-9]{10}|[A-Za-z\])*^][+-]?[0-9]{3}", re.ASCII)
_LETTER = "A-Za-z\u00b5\u03bc\u03a9\u2126\u00c5\u212b"
"""ASCII's, and both signs each for micro, ohm and ångström."""
_NAME = rf"[{_LETTER}][{_LETTER}0-9_]{{0,63}}|°[A-Za-z]"
_POWER = r"(?:(?:\*\*|\^)-?[1-9]|[²³])?"
_FACTOR = rf"(?:{_NAME}){_POWER}"
_PINT_FORM = re.compile(rf"(?:1\s*/\s*)?{_FACTOR}(?:(?:\s*[*/·]\s*|\s+){_FACTOR}){{0,15}}")
_GREATEST = Fraction(10) ** 60
_CODES = {
    "kilogram": "kg", "gram": "kg", "meter": "m", "second": "s", "ampere": "A", "kelvin": "K",
    "candela": "cd", "mole": "mol", "radian": "rad", "bit": "By",
}  # fmt: skip
"""pint's root units in UCUM; the gram as kilogram, the bit as byte."""
_SCALES = {"gram": Fraction(1000), "bit": Fraction(8)}

_PREFIXES = {
    "": 0, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "d": -1, "c": -2, "m": -3, "u": -6, "n": -9,
}  # fmt: skip
_METRIC = {
    "m": ("m", 0), "g": ("kg", -3), "s": ("s", 0), "A": ("A", 0), "K": ("K", 0),
    "mol": ("mol", 0), "By": ("By", 0), "l": ("m3", -3), "L": ("m3", -3), "Hz": ("s-1", 0),
    "N": ("kg.m.s-2", 0), "Pa": ("kg.m-1.s-2", 0), "J": ("kg.m2.s-2", 0), "W": ("kg.m2.s-3", 0),
    "V": ("A-1.kg.m2.s-3", 0), "Ohm": ("A-2.kg.m2.s-3", 0),
}  # fmt: skip
"""Units that take prefixes, with their base units and powers of ten."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What the text of a unit means.

    Parameters
    ----------
    base
        The base unit of its dimension, in UCUM where UCUM has it: two units can be brought to
        each other when theirs are the same.
    factor, offset
        A number x of this unit is ``x * factor + offset`` of the base unit.
    """

    base: str
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def to_base(self, number: Fraction) -> Fraction:
        """Return a number of this unit in the base unit."""
        return number * self.factor + self.offset

    def from_base(self, number: Fraction) -> Fraction:
        """Return a number of the base unit in this unit."""
        return (number - self.offset) / self.factor


COMMON = {
    **{
        prefix + name: Unit(base, Fraction(10) ** (power + exponent))
        for name, (base, exponent) in _METRIC.items()
        for prefix, power in _PREFIXES.items()
    },
    **{f"{prefix}iBy": Unit("By", Fraction(1024) ** n) for n, prefix in enumerate("KMGT", 1)},
    "1": Unit("1"),
    "%": Unit("1", Fraction(1, 100)),
    "min": Unit("s", Fraction(60)),
    "h": Unit("s", Fraction(3600)),
    "d": Unit("s", Fraction(86400)),
    "m/s": Unit("m.s-1"),
    "km/h": Unit("m.s-1", Fraction(5, 18)),
    "Cel": Unit("K", offset=Fraction(5463, 20)),
    "[degF]": Unit("K", Fraction(5, 9), Fraction(45967, 180)),
    "[in_i]": Unit("m", Fraction(254, 10_000)),
    "[ft_i]": Unit("m", Fraction(3048, 10_000)),
    "[mi_i]": Unit("m", Fraction(1_609_344, 1000)),
    "[lb_av]": Unit("kg", Fraction(45_359_237, 10**8)),
    "[oz_av]": Unit("kg", Fraction(45_359_237, 16 * 10**8)),
}
"""The units that are known without pint; it says the same of each."""


class Registry:
    """Knows units by their texts.

    Parameters
    ----------
    limits
        `Limits.unit_characters` bounds a text.

    Examples
    --------
    >>> registry = Registry()
    >>> registry.unit("kB")
    Unit(base='By', factor=Fraction(1000, 1), offset=Fraction(0, 1))
    >>> registry.unit("[degF]").to_base(Fraction(32))
    Fraction(5463, 20)
    >>> registry.unit("$").base
    'USD'
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._looking = Lock()
        self._found = lru_cache(maxsize=limits.units_remembered)(self._look_up)

    def unit(self, text: str) -> Unit:
        """Return what a text means.

        Raises
        ------
        UnitError
            When it is no unit, or one that cannot be converted by a factor and an offset.
        """
        found = self._found(text.strip()) if len(text) <= self._limits.unit_characters else None
        if found is None:
            raise UnitError(f"“{text[:40]}” is not a unit", _REMEDY)
        return found

    def _look_up(self, text: str) -> Unit | None:
        if (code := currency(text)) is not None:
            return Unit(code)
        if (unit := COMMON.get(_in_bytes(text))) is not None:
            return unit
        with self._looking:
            return self._of_text(text)

    def _of_text(self, text: str) -> Unit | None:
        ucum = _in_bytes(text)
        if _UCUM_FORM.fullmatch(ucum) and not _LONG_NUMBER.search(ucum):
            found = self._measured(self._of_ucum(ucum))
            if found is not None:
                return found
        if _PINT_FORM.fullmatch(text):
            return self._measured(self._of_pint(text))
        return None

    @cached_property
    def _pint(self) -> Any:
        """The registry of pint, with UCUM's units: most of a second and 40 MB."""
        import ucumvert  # type: ignore[import-untyped]
        from pint import UnitRegistry

        registry: Any = UnitRegistry(non_int_type=Fraction)
        registry.load_definitions(Path(ucumvert.__file__).with_name("pint_ucum_defs.txt"))
        return registry

    @cached_property
    def _ucum(self) -> Callable[[str], Any]:
        """Reads UCUM's spelling."""
        from ucumvert import UcumToPintTransformer, get_ucum_parser

        parser, transformer = get_ucum_parser(), UcumToPintTransformer(self._pint)
        return lambda text: transformer.transform(parser.parse(text))

    def _of_ucum(self, text: str) -> Any:
        from lark.exceptions import LarkError
        from pint import PintError

        try:
            return self._ucum(text)
        except (LarkError, PintError, ArithmeticError, AttributeError, TypeError, ValueError):
            return None  # each of these is how one kind of nonsense ends there

    def _of_pint(self, text: str) -> Any:
        from pint import PintError

        try:
            return self._pint.Quantity(Fraction(1), self._pint.parse_units(text))
        except (PintError, ArithmeticError, AttributeError, TypeError, ValueError):
            return None

    def _measured(self, quantity: Any) -> Unit | None:
        """Find factor and offset of a pint quantity by converting 0, 1 and 2 of it."""
        from pint import PintError

        if quantity is None or not hasattr(quantity, "to_root_units"):
            return None
        try:
            times = Fraction(str(quantity.magnitude))
            roots = [
                self._pint.Quantity(times * n, quantity.units).to_root_units() for n in range(3)
            ]
            zero, one, two = (Fraction(str(root.magnitude)) for root in roots)
        except (PintError, ArithmeticError, AttributeError, TypeError, ValueError):
            return None  # a logarithm, for example
        factor = one - zero
        if two - one != factor or not 1 / _GREATEST < factor < _GREATEST:
            return None
        powers = {name: Fraction(power) for name, power in roots[0].unit_items()}
        if any(power.denominator != 1 for power in powers.values()):
            return None  # a square root of a unit, in the CGS system
        base, scale = _base_of({name: int(power) for name, power in powers.items()})
        return Unit(base, factor / scale, zero / scale)


def _in_bytes(text: str) -> str:
    """Return a text with bytes as UCUM writes them."""
    ucum = _BYTE_TERM.sub(r"\1By", text)
    return "kBy" if ucum == "KBy" else ucum


def _base_of(powers: dict[str, int]) -> tuple[str, Fraction]:
    """Write pint's root units and their exponents as one base unit, with its scale."""
    scale = Fraction(1)
    for name, power in powers.items():
        scale *= _SCALES.get(name, Fraction(1)) ** power
    ordered = sorted(powers.items())
    if all(name in _CODES for name in powers):
        terms = [_CODES[name] + (str(power) if power != 1 else "") for name, power in ordered]
        return ".".join(terms) or "1", scale
    return "*".join(f"{n}**{power}" if power != 1 else n for n, power in ordered), scale
