"""QUDT's unit IRIs: their local names are made by rule, and are read and written by it.

``KiloGM-PER-M3`` is prefix and unit, an exponent, and what it is divided by. Only the
units of the table are known; an IRI of another unit is an unknown unit.

Source: QUDT, http://qudt.org/doc/DOC_VOCAB-UNITS.html.
"""

from __future__ import annotations

import re

from pyoxigraph import NamedNode

from semantic.units.quantities import CURRENCY, UNIT
from semantic.units.registry import CURRENCIES

_PREFIXES = {
    "Yotta": "Y", "Zetta": "Z", "Exa": "E", "Peta": "P", "Tera": "T", "Giga": "G", "Mega": "M",
    "Kilo": "k", "Hecto": "h", "Deca": "da", "Deci": "d", "Centi": "c", "Milli": "m",
    "Micro": "u", "Nano": "n", "Pico": "p", "Femto": "f", "Atto": "a",
    "Kibi": "Ki", "Mebi": "Mi", "Gibi": "Gi", "Tebi": "Ti",
}  # fmt: skip
_ATOMS = {
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
_NAMES = {code: name for name, code in reversed(_ATOMS.items())} | {"kg": "KiloGM"}
_PART = re.compile(rf"({'|'.join(_PREFIXES)})?([A-Z][A-Za-z_]*?)([1-9])?", re.ASCII)
_TERM = re.compile(r"([A-Za-z]+)(-?[1-9])?", re.ASCII)


def ucum_of(iri: NamedNode) -> str | None:
    """Return the UCUM code (or the currency) that a QUDT unit means.

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
    if (code := _ATOMS.get(part)) is not None:
        return code + (sign and "-1")
    found = _PART.fullmatch(part)
    if found is None or found[2] not in _ATOMS:
        return None
    exponent = found[3] or (sign and "1")
    return f"{_PREFIXES.get(found[1], '')}{_ATOMS[found[2]]}{sign if exponent else ''}{exponent}"


def iri_of(ucum: str) -> NamedNode | None:
    """Return the QUDT unit for a UCUM code without prefixes, where there is one.

    Examples
    --------
    >>> iri_of("By").value, iri_of("kg.m-3").value
    ('http://qudt.org/vocab/unit/BYTE', 'http://qudt.org/vocab/unit/KiloGM-PER-M3')
    """
    if ucum in CURRENCIES:
        return CURRENCY[ucum]
    if ucum in _NAMES:
        return UNIT[_NAMES[ucum]]
    above: list[str] = []
    below: list[str] = []
    for term in ucum.split("."):
        found = _TERM.fullmatch(term)
        if found is None or found[1] not in _NAMES:
            return None
        exponent = int(found[2] or 1)
        power = "" if abs(exponent) == 1 else str(abs(exponent))
        (above if exponent > 0 else below).append(_NAMES[found[1]] + power)
    return UNIT["-PER-".join(["-".join(above), *filter(None, ["-".join(below)])]).lstrip("-")]
