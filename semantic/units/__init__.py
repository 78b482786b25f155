"""Quantities (numbers with a unit) and the base units of attributes."""
