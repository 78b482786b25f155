"""Convert a unit's text or QUDT IRI to its dimension, factor and offset.

A text is tried in this order: a currency (each currency is its own dimension, because exchange
rates are unknown), bytes (``B`` is a byte, with or without a prefix, although strict UCUM reads
bel), UCUM by ucumvert, and pint's syntax. Both libraries take a second and 40 MB to load. Common
units are therefore in a table here, and the first other unit loads the libraries, once per process.

Texts are untrusted, so their length is limited (`Limits.unit_characters`), and exponents have at
most two digits. Because pint evaluates its syntax as arithmetic, only names with small powers reach
it.

Sources: UCUM, https://ucum.org/ucum; pint, https://pint.readthedocs.io/; ISO 4217; QUDT,
http://qudt.org/doc/DOC_VOCAB-UNITS.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from pyoxigraph import Literal, NamedNode

from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.terms import Term, compact
from semantic.units.quantities import CURRENCY, UNIT, UnitError

CURRENCIES = frozenset(
    """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN
    BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP
    GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS
    KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR
    MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
    RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP
    TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
    """.split()  # noqa: SIM905 - a table reads better as one
)
_SIGNS = {"$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}

_REMEDY = "Write it in UCUM, such as GBy, km/h, Cel or [in_i], or as pint does."
_BYTE_TERM = re.compile(r"(?<![A-Za-z\[])((?:[kKMGTPEZY]i?)?)B(?![A-Za-z\]\[])", re.ASCII)
_UCUM_FORM = re.compile(r"(?!.*\*\*)[!-~]+", re.ASCII)
_LONG_NUMBER = re.compile(r"[0-9]{10}|[A-Za-z\])*^][+-]?[0-9]{3}", re.ASCII)
_LETTER = "A-Za-z\u00b5\u03bc\u03a9\u2126\u00c5\u212b"
"""ASCII letters, and both code points of micro, ohm and ångström."""
_NAME = rf"[{_LETTER}][{_LETTER}0-9_]{{0,63}}|°[A-Za-z]"
_POWER = r"(?:(?:\*\*|\^)-?[1-9]|[²³])?"
_FACTOR = rf"(?:{_NAME}){_POWER}"
_PINT_FORM = re.compile(rf"(?:1\s*/\s*)?{_FACTOR}(?:(?:\s*[*/·]\s*|\s+){_FACTOR}){{0,15}}")
_GREATEST = Fraction(10) ** 60
_CODES = {
    "kilogram": "kg", "gram": "kg", "meter": "m", "second": "s", "ampere": "A", "kelvin": "K",
    "candela": "cd", "mole": "mol", "radian": "rad", "bit": "By",
}  # fmt: skip
"""UCUM codes of pint's root units; gram becomes kilogram, and bit becomes byte."""
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
    """The meaning of a unit: a number x of it is ``x * factor + offset`` of `base`.

    `base` is the base unit of the dimension, in UCUM if UCUM defines it. Units with the same `base`
    can be converted to each other.
    """

    base: str
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def to_base(self, number: Fraction) -> Fraction:
        """Convert a number of this unit to the base unit."""
        return number * self.factor + self.offset

    def from_base(self, number: Fraction) -> Fraction:
        """Convert a number of the base unit to this unit."""
        return (number - self.offset) / self.factor


@dataclass(frozen=True, slots=True)
class NamedUnit:
    """A unit in an ontology or a query: the term that names it, and its meaning."""

    term: NamedNode | Literal
    unit: Unit

    @property
    def name(self) -> str:
        """The unit's text or compact IRI, for messages."""
        return self.term.value if isinstance(self.term, Literal) else compact(self.term)

    def convert(self, number: Fraction, to: NamedUnit) -> Fraction:
        """Convert a number of this unit; raise `UnitError` if the dimensions differ."""
        if self.unit.base != to.unit.base:
            what = f"{self.name} cannot be converted to {to.name}"
            raise UnitError(what, "Use a unit of the same dimension.")
        return to.unit.from_base(self.unit.to_base(number))


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
"""Units known without pint, with the same values as in pint."""


class Registry:
    """Finds the meaning of a unit's text (currencies, bytes, UCUM, pint), and caches it.

    Limits: `Limits.unit_characters` for a text, `Limits.units_remembered` for the cache.

    Examples
    --------
    >>> registry = Registry()
    >>> registry.unit("kB")
    Unit(base='By', factor=Fraction(1000, 1), offset=Fraction(0, 1))
    >>> registry.unit("[degF]").to_base(Fraction(32)), registry.unit("$").base
    (Fraction(5463, 20), 'USD')
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._found = lru_cache(maxsize=limits.units_remembered)(_look_up)

    def unit(self, text: str) -> Unit:
        """Return the unit that a text names.

        Raise `UnitError` if the text is not a unit, or the unit has no conversion by factor and
        offset.
        """
        found = self._found(text.strip()) if len(text) <= self._limits.unit_characters else None
        if found is None:
            raise UnitError(f"“{text[:40]}” is not a unit", _REMEDY)
        return found

    def named(self, term: Term) -> NamedUnit:
        """Return the unit that a string or a QUDT IRI names; raise `UnitError` if it names none."""
        if isinstance(term, Literal):
            return NamedUnit(Literal(term.value), self.unit(term.value))
        if isinstance(term, NamedNode) and (text := ucum_of(term)) is not None:
            return NamedUnit(term, self.unit(text))
        remedy = "Give a string such as GB, or one of QUDT's units."
        raise UnitError(f"{compact(term)} is not a unit", remedy)


def _look_up(text: str) -> Unit | None:
    if (code := _SIGNS.get(text, text)) in CURRENCIES:
        return Unit(code)
    ucum = _BYTE_TERM.sub(r"\1By", text)
    ucum = "kBy" if ucum == "KBy" else ucum
    if (unit := COMMON.get(ucum)) is not None:
        return unit
    is_ucum = _UCUM_FORM.fullmatch(ucum) and not _LONG_NUMBER.search(ucum)
    if is_ucum and (unit := _libraries().of_ucum(ucum)) is not None:
        return unit
    return _libraries().of_pint(text) if _PINT_FORM.fullmatch(text) else None


class _Libraries:
    """Finds units with ucumvert (UCUM syntax) and pint; one thread parses at a time."""

    def __init__(self) -> None:
        import ucumvert  # type: ignore[import-untyped]
        from pint import UnitRegistry

        self._registry: Any = UnitRegistry(non_int_type=Fraction)
        definitions = Path(ucumvert.__file__).with_name("pint_ucum_defs.txt")
        self._registry.load_definitions(definitions)
        self._parser = ucumvert.get_ucum_parser()
        self._transformer = ucumvert.UcumToPintTransformer(self._registry)
        self._reading = Lock()

    def of_ucum(self, text: str) -> Unit | None:
        """Return the unit of a text in UCUM syntax, or ``None`` if it has none."""
        return self._attempt(lambda: self._transformer.transform(self._parser.parse(text)))

    def of_pint(self, text: str) -> Unit | None:
        """Return the unit of a text in pint syntax, or ``None`` if it has none."""
        registry = self._registry
        return self._attempt(lambda: registry.Quantity(Fraction(1), registry.parse_units(text)))

    def _attempt(self, read: Callable[[], Any]) -> Unit | None:
        from lark.exceptions import LarkError
        from pint import PintError

        try:
            with self._reading:
                return self._measured(read())
        except (LarkError, PintError, ArithmeticError, AttributeError, TypeError, ValueError):
            return None  # Each error results from one kind of invalid text.

    def _measured(self, quantity: Any) -> Unit | None:
        """Return the unit of a quantity of pint; find factor and offset by converting 0, 1 and 2.

        Return ``None`` for logarithmic units, extreme factors and fractional powers.
        """
        times, units = Fraction(str(quantity.magnitude)), quantity.units
        roots = [self._registry.Quantity(times * n, units).to_root_units() for n in range(3)]
        zero, one, two = (Fraction(str(root.magnitude)) for root in roots)
        factor = one - zero
        if two - one != factor or not 1 / _GREATEST < factor < _GREATEST:
            return None
        powers = {name: Fraction(power) for name, power in sorted(roots[0].unit_items())}
        if any(power.denominator != 1 for power in powers.values()):
            return None  # CGS units can contain a square root.
        scale = Fraction(1)
        for name, power in powers.items():
            scale *= _SCALES.get(name, Fraction(1)) ** int(power)
        known = powers.keys() <= _CODES.keys()
        of, by, sign = (_CODES, ".", "") if known else ({n: n for n in powers}, "*", "**")
        terms = [
            of[name] + (f"{sign}{power}" if power != 1 else "") for name, power in powers.items()
        ]
        return Unit(by.join(terms) or "1", factor / scale, zero / scale)


@lru_cache(maxsize=1)
def _libraries() -> _Libraries:
    return _Libraries()


# -- QUDT's IRIs --------------------------------------------------------------------------

_QUDT_PREFIXES = {
    "Yotta": "Y", "Zetta": "Z", "Exa": "E", "Peta": "P", "Tera": "T", "Giga": "G", "Mega": "M",
    "Kilo": "k", "Hecto": "h", "Deca": "da", "Deci": "d", "Centi": "c", "Milli": "m",
    "Micro": "u", "Nano": "n", "Pico": "p", "Femto": "f", "Atto": "a",
    "Kibi": "Ki", "Mebi": "Mi", "Gibi": "Gi", "Tebi": "Ti",
}  # fmt: skip
_QUDT_UNITS = {
    "UNITLESS": "1", "NUM": "1", "PERCENT": "%",
    "M": "m", "GM": "g", "SEC": "s", "A": "A", "K": "K", "CD": "cd", "MOL": "mol", "RAD": "rad",
    "BYTE": "By", "BIT": "bit", "HZ": "Hz", "N": "N", "PA": "Pa", "J": "J", "W": "W", "V": "V",
    "OHM": "Ohm", "FARAD": "F", "T": "T", "WB": "Wb", "H": "H", "S": "S", "C": "C", "LM": "lm",
    "LUX": "lx", "BQ": "Bq", "GRAY": "Gy", "SV": "Sv", "EV": "eV", "BAR": "bar", "L": "L",
    "TONNE": "t", "TON_Metric": "t", "MIN": "min", "HR": "h", "DAY": "d", "WK": "wk",
    "MO": "mo", "YR": "a", "DEG": "deg", "DEG_C": "Cel", "DEG_F": "[degF]", "CAL": "cal",
    "IN": "[in_i]", "FT": "[ft_i]", "YD": "[yd_i]", "MI": "[mi_i]", "MI_N": "[nmi_i]",
    "LB": "[lb_av]", "OZ": "[oz_av]", "AC": "[acr_us]", "GAL_US": "[gal_us]", "KN": "[kn_i]",
}  # fmt: skip
_PART = re.compile(rf"({'|'.join(_QUDT_PREFIXES)})?([A-Z][A-Za-z_]*?)([1-9])?", re.ASCII)


def ucum_of(iri: NamedNode) -> str | None:
    """Return the UCUM code (or currency) of a QUDT unit; return ``None`` for unknown units.

    QUDT composes local names: ``KiloGM-PER-M3`` is a prefix and unit, divided by a unit with an
    exponent.

    Examples
    --------
    >>> ucum_of(UNIT["GigaBYTE"]), ucum_of(UNIT["KiloGM-PER-M3"]), ucum_of(UNIT["Nonsense"])
    ('GBy', 'kg.m-3', None)
    """
    if iri.value.startswith(CURRENCY.iri):
        code = iri.value.removeprefix(CURRENCY.iri)
        return code if code in CURRENCIES else None
    if not iri.value.startswith(UNIT.iri):
        return None
    name = iri.value.removeprefix(UNIT.iri)
    if (code := name.removeprefix("CCY_")) in CURRENCIES:
        return code
    above, _, below = f"-{name}".partition("-PER-")
    parts = [_part(part, "") for part in above.split("-") if part]
    parts += [_part(part, "-") for part in below.split("-") if part]
    return ".".join(p for p in parts if p) if parts and all(parts) else None


def _part(part: str, sign: str) -> str | None:
    if (code := _QUDT_UNITS.get(part)) is not None:
        return code + (sign and "-1")
    found = _PART.fullmatch(part)
    if found is None or found[2] not in _QUDT_UNITS:
        return None
    exponent = found[3] or (sign and "1")
    prefix = _QUDT_PREFIXES.get(found[1], "")
    return f"{prefix}{_QUDT_UNITS[found[2]]}{sign if exponent else ''}{exponent}"
