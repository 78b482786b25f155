"""Tests of text: what they say, how one is decided, how very many are decided in one pass."""
