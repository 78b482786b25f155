"""Checks of strings in JSON."""

from __future__ import annotations

import json


def is_text(value: object) -> bool:
    """Check that JSON can be stored: Unicode strings without NUL, and finite numbers."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        return False
    return r"\u0000" not in text.replace(r"\\", "")
