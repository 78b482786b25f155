"""Subscriptions, publications, matching and retention."""
