"""Algorithms whose own papers were not at hand: each says what it is reconstructed from."""
