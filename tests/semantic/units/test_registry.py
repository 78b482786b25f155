"""Meanings of unit strings, and quick rejection of hostile ones."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from semantic.limits import Limits
from semantic.units import registry
from semantic.units.quantities import CURRENCY, UNIT, UnitError
from semantic.units.registry import COMMON, CURRENCIES, Registry, Unit, ucum_of

REGISTRY = Registry()
REGISTRY_OF_PINT = Registry()


@pytest.mark.parametrize(
    ("text", "base", "factor"),
    [
        ("B", "By", 1),
        ("By", "By", 1),
        ("kB", "By", 1000),
        ("KB", "By", 1000),
        ("KiB", "By", 1024),
        ("GBy", "By", 10**9),
        ("GiB", "By", 2**30),
        ("bit", "By", Fraction(1, 8)),
        ("MB/s", "By.s-1", 10**6),
        ("m", "m", 1),
        ("[in_i]", "m", Fraction(254, 10000)),
        ("inch", "m", Fraction(254, 10000)),
        ("km/h", "m.s-1", Fraction(10, 36)),
        ("kilometers per hour", "m.s-1", Fraction(10, 36)),
        ("g", "kg", Fraction(1, 1000)),
        ("t", "kg", 1000),
        ("kg.m/s2", "kg.m.s-2", 1),
        ("m²", "m2", 1),
        ("%", "1", Fraction(1, 100)),
        ("1", "1", 1),
        ("10*3", "1", 1000),
        (" h ", "s", 3600),
    ],
)
def test_factor(text: str, base: str, factor: int | Fraction) -> None:
    assert REGISTRY.unit(text) == Unit(base, Fraction(factor))


@pytest.mark.parametrize(("text", "kelvin"), [("Cel", "293.15"), ("degC", "293.15"), ("K", "20")])
def test_offset(text: str, kelvin: str) -> None:
    assert REGISTRY.unit(text).to_base(Fraction(20)) == Fraction(kelvin)


def test_that_an_offset_is_exact_both_ways() -> None:
    fahrenheit = REGISTRY.unit("[degF]")
    assert fahrenheit.to_base(Fraction(-40)) == REGISTRY.unit("Cel").to_base(Fraction(-40))
    assert fahrenheit.from_base(fahrenheit.to_base(Fraction(1, 3))) == Fraction(1, 3)


@pytest.mark.parametrize(("text", "code"), [("$", "USD"), ("€", "EUR"), ("£", "GBP"), ("¥", "JPY")])
def test_currency(text: str, code: str) -> None:
    assert REGISTRY.unit(text) == REGISTRY.unit(code) == Unit(code)


def test_that_no_currency_hides_a_unit_of_ucum() -> None:
    from ucumvert import InvalidUcumError, PintUcumRegistry

    registry = PintUcumRegistry()
    for code in sorted(CURRENCIES):
        with pytest.raises(InvalidUcumError):
            registry.from_ucum(code)


@pytest.mark.parametrize(
    "text", ["GB", "mi/h", "N", "[degF]", "mol/L", "count/m", "Ohm", "%", "mAh", "EUR", "acr"]
)
def test_that_a_base_unit_is_its_own(text: str) -> None:
    try:
        base = REGISTRY.unit(text).base
    except UnitError:
        assert text == "acr"  # UCUM means [acr_us], pint acre.
    else:
        assert REGISTRY.unit(base) == Unit(base)


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "xyz", "dB", "G", "9**9**9**9", "9" * 64, "m**9**9", "(" * 64, "km999.km999"],
        *["km99999999", "10*999999999", "{a}", "[pH]", "m" * 65, "1e999", "__import__('os')"],
        *["10**10**10 m", "10**10**10", "m**10**10", "10^10^10 m", "(10**10)**10.m"],
        *["\ud800", "m/0", "m\0", "lambda: 0", "¼", "kB" * 32, "m" + "." * 60, "٣m"],
    ],
)
def test_invalid_units_are_refused(text: str) -> None:
    with pytest.raises(UnitError, match="is not a unit"):
        REGISTRY.unit(text)


@given(st.text(st.sampled_from("kmgB0129.*/^-+()[]{}_% °²'$"), max_size=64) | st.text(max_size=64))
@settings(max_examples=200, deadline=2000)
def test_that_any_text_is_a_unit_or_none(text: str) -> None:
    try:
        unit = REGISTRY.unit(text)
    except UnitError:
        return
    assert unit.from_base(unit.to_base(Fraction(7))) == 7


def test_that_the_length_is_a_limit() -> None:
    with pytest.raises(UnitError):
        Registry(Limits(unit_characters=1)).unit("kg")


@pytest.mark.parametrize(
    ("name", "ucum"),
    [
        ("GigaBYTE", "GBy"),
        ("GibiBYTE", "GiBy"),
        ("KiloM-PER-HR", "km.h-1"),
        ("M-PER-SEC2", "m.s-2"),
        ("N-M", "N.m"),
        ("PER-SEC", "s-1"),
        ("KiloGM", "kg"),
        ("DEG_F", "[degF]"),
        ("CCY_EUR", "EUR"),
    ],
)
def test_qudt(name: str, ucum: str) -> None:
    assert ucum_of(UNIT[name]) == ucum
    assert REGISTRY.unit(ucum)


def test_a_currency_of_qudt() -> None:
    assert ucum_of(CURRENCY["EUR"]) == "EUR"


@pytest.mark.parametrize("iri", [UNIT["Xyz"], UNIT[""], UNIT["-PER-"], NamedNode("urn:GigaBYTE")])
def test_what_qudt_does_not_have(iri: NamedNode) -> None:
    assert ucum_of(iri) is None


@pytest.mark.parametrize("text", COMMON)
def test_that_pint_says_the_same_of_the_common_units(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = COMMON[text]
    monkeypatch.setattr(registry, "COMMON", {})
    assert REGISTRY_OF_PINT.unit(text) == expected


def test_that_a_common_unit_does_not_load_pint() -> None:
    code = (
        "import sys; from semantic.units.registry import Registry; "
        "Registry().unit('40 GB'.split()[1]); sys.exit('pint' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
