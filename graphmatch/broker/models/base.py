"""Bases of the models of requests and answers."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

EXAMPLE_ID = "sub_0123456789abcdef"
EXAMPLE_QUERY = "SELECT ?offer WHERE { ?offer a <urn:example:Laptop> }"

Time = datetime
"""A time. Pydantic reads numbers above 2 · 10¹⁰ as milliseconds, as in the store."""


class Answer(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)


class Page(Answer):
    """A page of a list. `next` is the address of the next page; the last page has none."""

    next: str | None = None


class Model(Answer):
    """A part of a request. An unknown field is an error."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @field_validator("*", mode="before")
    @classmethod
    def _check_texts(cls, value: Any) -> Any:
        """Refuse values that the database cannot store."""
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
            is_valid = bool(text.encode()) and r"\u0000" not in text.replace(r"\\", "")
        except (ValueError, RecursionError):
            is_valid = False
        if not is_valid:
            raise ValueError("a lone surrogate, NUL or invalid number")
        return value


def example(*values: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a model with examples in its schema."""
    return ConfigDict(json_schema_extra={"examples": list(values)})
