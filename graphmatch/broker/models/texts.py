"""Checks of texts in JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


def is_text(given: object) -> bool:
    """Whether JSON can be stored: each text is Unicode without a NUL, each number one of JSON."""
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        return False
    return r"\u0000" not in text.replace(r"\\", "")
