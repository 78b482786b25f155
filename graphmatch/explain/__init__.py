"""Explanations: why a subscription matches or does not match, with near misses."""
