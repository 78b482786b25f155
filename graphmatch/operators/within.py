"""Geometry: whether a publication's geometry lies within the region of a subscription, or near it.

Geometries are ``geo:wktLiteral`` of GeoSPARQL: WKT with an optional IRI of the coordinate system.
Longitude comes first in CRS84, the default, and latitude first in EPSG 4326. Regions are in
shapely's STRtree, so a subscription costs nothing unless its bounding box contains the geometry.
Needs ``graphmatch[geo]``.

Cost: about 30 µs for one point and 100,000 regions, and 8 µs for each matching box of a polygon of
2,000 vertices. The first query builds the tree: 0.1 s for 100,000 regions.

Source: Leutenegger, Lopez, Edgington: STR: A simple and efficient algorithm for R-tree packing,
ICDE 1997; OGC GeoSPARQL 1.1 (22-047r1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal

from graphmatch.operators.operator import Operator, needed
from semantic.errors import unknown_choice
from semantic.terms import Term
from semantic.vocabulary import GEO, GEOF, OP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WKT = GEO["wktLiteral"]
_CRS84 = ("http://www.opengis.net/def/crs/OGC/1.3/CRS84", "")
_EPSG_4326 = "http://www.opengis.net/def/crs/EPSG/0/4326"
_RELATIONS = {"sfWithin": "contains", "sfIntersects": "intersects", "sfContains": "within"}
"""The relation of a region to an argument, by the relation of the argument to the region."""
_EARTH = 6_371_008.8
"""Mean radius of the Earth in metres."""
_FEW = 64


@cache
def _shapely() -> Any:
    return needed("shapely", "geo")


def geometry(term: Term) -> Any:
    """Return the geometry of a ``geo:wktLiteral``, longitude first.

    Raises
    ------
    ValueError
        If the term is not a valid geometry, is empty, or has an unknown coordinate system.

    Examples
    --------
    Needs ``shapely``::

        geometry(Literal("POINT(2.35 48.85)", datatype=GEO["wktLiteral"]))
    """
    if not isinstance(term, Literal) or term.datatype != _WKT:
        raise ValueError("it is not a geo:wktLiteral")
    return _parsed(term.value)


@lru_cache(maxsize=1024)
def _prepared(term: Term) -> Any:
    """Return the geometry of a literal, cached and prepared for many comparisons."""
    shapely = _shapely()
    found = geometry(term)
    shapely.prepare(found)
    return found


def _parsed(text: str) -> Any:
    shapely = _shapely()
    system = ""
    if text.startswith("<"):
        system, _, text = text[1:].partition(">")
    if system not in _CRS84 and system != _EPSG_4326:
        raise ValueError(f"unknown coordinate system: <{system}>")
    try:
        found = shapely.from_wkt(text)
    except shapely.errors.ShapelyError as error:
        raise ValueError(str(error)) from error
    if found is None or found.is_empty:
        raise ValueError("an empty geometry")
    if system == _EPSG_4326:
        found = shapely.transform(found, lambda points: points[:, ::-1])
    return found


class _Boxes:
    """Index of geometries by their bounding boxes; each geometry has a number.

    The next query puts new geometries into another tree, merged with trees of similar size.
    """

    def __init__(self) -> None:
        import numpy as np

        self.geometries: NDArray[Any] = np.empty(_FEW, object)
        self._free = list(range(_FEW - 1, -1, -1))
        self._new: list[int] = []
        self._trees: list[tuple[Any, NDArray[np.intp]]] = []
        self._places: dict[int, tuple[NDArray[np.intp], int]] = {}

    def put(self, found: Any) -> int:
        """Add a geometry; return its number."""
        import numpy as np

        if not self._free:
            size = len(self.geometries)
            self._free = list(range(2 * size - 1, size - 1, -1))
            self.geometries = np.concatenate([self.geometries, np.empty(size, object)])
        number = self._free.pop()
        self.geometries[number] = found
        self._new.append(number)
        return number

    def remove(self, number: int) -> None:
        """Remove the geometry with a number, which may be reused."""
        if number in self._places:
            numbers, place = self._places.pop(number)
            numbers[place] = -1
        else:
            self._new.remove(number)
        self.geometries[number] = None
        self._free.append(number)

    def query(self, found: Any) -> NDArray[np.intp]:
        """Return the numbers of the geometries whose bounding boxes intersect that of `found`."""
        import numpy as np

        if self._new:
            self._build()
        hits = [numbers[tree.query(found)] for tree, numbers in self._trees]
        several = np.concatenate([np.empty(0, np.intp), *hits])
        alive: NDArray[np.intp] = several[several >= 0]
        return alive

    def _build(self) -> None:
        """Build a tree of the new geometries and of those in trees that are not much larger."""
        import numpy as np

        shapely = _shapely()
        own = np.array(self._new, np.intp)
        while self._trees and len(self._trees[-1][1]) < 4 * len(own) + _FEW:
            _, before = self._trees.pop()
            own = np.concatenate([before[before >= 0], own])
        self._new = []
        self._trees.append((shapely.STRtree(self.geometries[own]), own))
        self._places.update((int(number), (own, place)) for place, number in enumerate(own))


class _Regions(_Boxes):
    """Index of `Within`: finds the regions of subscriptions that a geometry is in, for example.

    `relation` is the relation of a region to the geometry, a function of shapely.
    """

    def __init__(self, relation: str) -> None:
        super().__init__()
        self._test: Callable[..., Any] = getattr(_shapely(), relation)

    def add(self, constants: Sequence[Term]) -> int:
        """Add the region of a call; return its number."""
        if len(constants) != 1:
            raise ValueError("it takes two geometries")
        return self.put(geometry(constants[0]))

    def matches(self, argument: Term) -> NDArray[np.intp]:
        """Return the numbers of the regions that have the relation to a geometry (if it is one)."""
        import numpy as np

        try:
            found = geometry(argument)
        except ValueError:
            return np.empty(0, np.intp)
        several = self.query(found)
        if not several.size:
            return several
        regions = self.geometries[several]
        _shapely().prepare(regions)
        kept: NDArray[np.intp] = several[self._test(regions, found)]
        return kept


class Within(Operator):
    """``geof:sfWithin(?geometry, region)``: whether a geometry lies in a region (or `relation`).

    Parameters
    ----------
    relation
        ``sfWithin``, ``sfIntersects`` or ``sfContains``; also its name among GeoSPARQL's functions.
    """

    def __init__(self, relation: str = "sfWithin") -> None:
        shapely = _shapely()
        if relation not in _RELATIONS:
            raise unknown_choice("relation", relation, _RELATIONS)
        stands = getattr(shapely, _RELATIONS[relation])

        def decide(one: Term, other: Term) -> bool:
            return bool(stands(_prepared(other), geometry(one)))

        super().__init__(
            GEOF[relation].value,
            decide,
            cost=2e-5,
            timeout=None,
            index=lambda: _Regions(_RELATIONS[relation]),
        )


class Near(Operator):
    """``op:near(?geometry, point, metres)``: whether a geometry is near a point.

    The distance along the sphere between the centroids must be at most `metres`.
    """

    def __init__(self) -> None:
        def decide(one: Term, other: Term, most: Term) -> bool:
            shapely = _shapely()
            place, centre = (shapely.centroid(geometry(term)) for term in (one, other))
            return bool(_metres(centre.x, centre.y, place.x, place.y) <= _number(most))

        super().__init__(OP["near"].value, decide, cost=2e-5, timeout=None, index=_Circles)


class _Circles(_Boxes):
    """Index of `Near`: finds the subscriptions' circles that contain a geometry's centroid."""

    def __init__(self) -> None:
        import numpy as np

        super().__init__()
        self._circles: NDArray[np.float64] = np.zeros((_FEW, 3))

    def add(self, constants: Sequence[Term]) -> int:
        """Add a circle by its centre and its radius in metres; return its number."""
        import numpy as np

        shapely = _shapely()
        if len(constants) != 2:
            raise ValueError("it takes a geometry, a point and metres")
        centre, metres = shapely.centroid(geometry(constants[0])), _number(constants[1])
        key = self.put(_box(centre.x, centre.y, metres))
        if key >= len(self._circles):
            self._circles = np.concatenate([self._circles, np.zeros_like(self._circles)])
        self._circles[key] = centre.x, centre.y, metres
        return key

    def matches(self, argument: Term) -> NDArray[np.intp]:
        """Return the numbers of the circles that contain a geometry's centroid (if it is one)."""
        import numpy as np

        shapely = _shapely()
        try:
            place = shapely.centroid(geometry(argument))
        except ValueError:
            return np.empty(0, np.intp)
        several = self.query(place)
        if not several.size:
            return several
        x, y, metres = self._circles[several].T
        kept: NDArray[np.intp] = several[_metres(x, y, place.x, place.y) <= metres]
        return kept


def _number(term: Term) -> float:
    number = float(term.value) if isinstance(term, Literal) else math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{term} is not a distance in metres")
    return number


def _metres(x: Any, y: Any, to_x: Any, to_y: Any) -> Any:
    """Return the distances along the sphere of points in degrees, by the haversine formula."""
    import numpy as np

    x, y, to_x, to_y = map(np.radians, (x, y, to_x, to_y))
    across = np.sin((to_y - y) / 2) ** 2
    across = across + np.cos(y) * np.cos(to_y) * np.sin((to_x - x) / 2) ** 2
    return 2 * _EARTH * np.arcsin(np.sqrt(np.clip(across, 0, 1)))


def _box(x: float, y: float, metres: float) -> Any:
    """Return a box in degrees that contains a circle.

    It has all longitudes if the circle crosses the 180th meridian or contains a pole.
    """
    shapely = _shapely()
    high = math.degrees(metres / _EARTH) * (1 + 1e-9) + 1e-9
    south, north = y - high, y + high
    if north >= 90 or south <= -90:
        return shapely.box(-180, max(south, -90), 180, min(north, 90))
    ratio = math.sin(math.radians(high)) / math.cos(math.radians(y))
    wide = math.degrees(math.asin(ratio)) * (1 + 1e-9) + 1e-9 if ratio < 1 else 180.0
    west, east = x - wide, x + wide
    if wide >= 180 or (west < -180 or east > 180):
        return shapely.box(-180, south, 180, north)
    return shapely.box(west, south, east, north)
