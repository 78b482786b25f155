"""Print `ontologies/places.ttl`: continents, regions and countries, with names in five languages.

Run it with Unicode's CLDR in JSON, which the npm registry serves::

    npm install --prefix /tmp/cldr cldr-core@48.2.0 cldr-localenames-full@48.2.0
    python data/make_places.py /tmp/cldr/node_modules > ontologies/places.ttl

CLDR 48.2 gives the places, their hierarchy, and most names. The regions are those of the United
Nations' M49, and the countries have the codes of ISO 3166. The script prints the Unicode licence at
the head of the file. `place-names.csv`, written by hand, adds other names and adjectives. If a cell
begins with ``=``, its names replace those of CLDR, because one of these is also another name, such
as *Maurice* or *Grenade*. The world is left out, because *world* is an everyday word.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LOCALES = {
    "de": ("de", "de-AT", "de-CH"),
    "en": ("en", "en-GB"),
    "es": ("es", "es-419", "es-MX"),
    "fr": ("fr", "fr-CA"),
    "pt": ("pt", "pt-PT"),
}
CONTINENTS = ("002", "009", "019", "142", "150")
GROUPS = {"003": "019", "202": "002", "419": "019", "EU": "150"}
"""Groups of regions or countries that cut across M49, and the continent of each."""
ACCENTED = {"É": "E", "Î": "I"}
"""Capitals that French texts also write without accents."""
HEAD = """\
# Continents, regions (UN M49) and countries (ISO 3166), with names in five languages.
#
# Made by data/make_places.py from the Unicode CLDR, version 48.2, and from data/place-names.csv.
# Change these instead. A place with `gm:properName true` is found only with its initial capitals:
# Turkey, not turkey. The Unicode CLDR has this licence:
#
"""
PREFIXES = """
@prefix gm: <urn:graphmatch:> .
@prefix place: <urn:graphmatch:place:> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""


def main(packages: Path) -> None:
    """Print the file from the npm packages in a folder."""
    core = packages / "cldr-core"
    supplemental = {
        name: read(core / "supplemental" / f"{name}.json")["supplemental"][name]
        for name in ("codeMappings", "territoryContainment")
    }
    codes, regions = supplemental.values()
    broader: defaultdict[str, set[str]] = defaultdict(set, {"AQ": set()})
    broader |= {group: {continent} for group, continent in GROUPS.items()}
    queue = [*CONTINENTS, *GROUPS]
    for region in queue:
        for part in regions[region]["_contains"]:
            if part.isdigit() or "_numeric" in codes.get(part, ()):
                broader[part].add(region)
                queue += [part] if part in regions and part not in queue else []
    territories = {}
    for locale in (locale for several in LOCALES.values() for locale in several):
        file = packages / "cldr-localenames-full/main" / locale / "territories.json"
        names = read(file)["main"][locale]["localeDisplayNames"]["territories"]
        territories[locale] = {code: name.replace(" & ", " and ") for code, name in names.items()}
    with Path(__file__).with_name("place-names.csv").open(encoding="utf-8", newline="") as table:
        own = {row["place"]: row for row in csv.DictReader(table)}
    licence = (core / "LICENSE").read_text(encoding="utf-8").strip()
    sys.stdout.write(
        HEAD + "\n".join(f"# {line}".rstrip() for line in licence.split("\n")) + PREFIXES
    )
    for place in sorted({*CONTINENTS, *broader}):
        labels: defaultdict[str, list[str]] = defaultdict(list)
        for language, locales in LOCALES.items():
            known = [territories[locale] for locale in locales]
            for kind, name in names_of(place, language, known, own.get(place, {})):
                labels[kind].append(f"{json.dumps(name, ensure_ascii=False)}@{language}")
        parts = [f"place:{place} a skos:Concept", "gm:properName true"]
        parts += [f"skos:broader place:{region}" for region in sorted(broader[place])]
        parts += [f"skos:{kind} {', '.join(labels[kind])}" for kind in labels]
        sys.stdout.write("\n" + " ;\n    ".join(parts) + " .\n")


def names_of(
    place: str, language: str, known: list[dict[str, str]], own: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the names of a place, each with its SKOS property.

    `known` are CLDR's names in the locales of the language, and `own` is the row of the table.
    """
    cell = own.get(language, "")
    names = [name for name in cell.removeprefix("=").split(" | ") if name]
    if not cell.startswith("="):
        others = [
            name for table in known for code, name in table.items() if code[:3] == f"{place}-"
        ]
        others = [name for name in others if "(" not in name]
        names = [*(table[place] for table in known), *others, *names]
    names = list(dict.fromkeys(names))
    yield "prefLabel", names[0]
    yield from (("altLabel", name) for name in names[1:])
    for name in names:
        if language == "de" and name.endswith("sch"):
            yield from (("hiddenLabel", name + ending) for ending in ("er", "em"))
        elif language == "fr" and name[0] in ACCENTED:
            yield "hiddenLabel", ACCENTED[name[0]] + name[1:]


def read(file: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
