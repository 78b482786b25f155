"""Operators for flats: where they are, what their photos show, and whether they are described well.

Try it: graphmatch filter data/operators/flats.nq -s data/operators/flats.rq
            --operators data/operators/flats.py:operators
"""

from pathlib import Path

from graphmatch.operators import operator
from graphmatch.operators.shacl import Shacl
from graphmatch.operators.within import Within

OUTSIDE = {"balcony", "balconies", "terrace", "loggia", "veranda"}


@operator("urn:flats:balcony", cost=0.001, version="1")
def shows_balcony(caption):
    """Whether a photo's caption speaks of a place outside; a model would look at the photo."""
    return not OUTSIDE.isdisjoint(caption.value.lower().replace(",", " ").split())


def operators():
    """Return what `flats.rq` calls."""
    return [Within(), shows_balcony, Shacl(Path(__file__).with_name("shapes.ttl"))]
