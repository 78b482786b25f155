"""Backtests, queries by example, explanations and subscription health."""
