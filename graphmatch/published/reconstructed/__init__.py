"""Algorithms whose own papers were not available. Each module names its sources."""
