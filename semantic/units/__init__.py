"""Quantities: numbers with a unit, and the units that attributes are counted in."""
