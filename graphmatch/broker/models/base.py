"""Bases of the models of requests and answers."""

from __future__ import annotations

import inspect
import json
import re
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

EXAMPLE_ID = "sub_0123456789abcdef"
EXAMPLE_QUERY = "SELECT ?offer WHERE { ?offer a <urn:example:Laptop> }"
_SECTION = re.compile(r"\n*^Attributes\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^([\w-]+)\n((?: {4}.+\n?)+)", re.MULTILINE)

Time = datetime
"""A time. Pydantic reads numbers above 2 · 10¹⁰ as milliseconds, as in the store."""


class Answer(BaseModel):
    """A part of an answer.

    The section ``Attributes`` of a docstring gives the descriptions of the fields in the schema.
    """

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        """Return the schema, with the texts of the docstrings."""
        schema: dict[str, Any] = handler.resolve_ref_schema(handler(core))
        for base in reversed(cls.__mro__):
            text, *sections = _SECTION.split(inspect.cleandoc(base.__dict__.get("__doc__") or ""))
            for name, description in _ENTRY.findall("".join(sections)):
                schema["properties"][name]["description"] = " ".join(description.split())
        schema["description"] = text
        return schema


class Page(Answer):
    """A page of a list.

    Attributes
    ----------
    next
        Address of the next page. The last page has none.
    """

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
            text.encode()
        except (ValueError, RecursionError):
            raise ValueError("half a character, or no number of JSON") from None
        if r"\u0000" in text.replace(r"\\", ""):
            raise ValueError("a NUL (U+0000)")
        return value


def example(*values: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a model with examples in its schema."""
    return ConfigDict(json_schema_extra={"examples": list(values)})
