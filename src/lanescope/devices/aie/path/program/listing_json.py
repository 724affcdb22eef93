"""Listings as JSON: ``{"bundles": [{"address": 0, "size": 4, "text": "nop"}], "functions": [...]}``."""

from __future__ import annotations

import msgspec

from lanescope.errors import InputError


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """A bundle; without a size it reaches up to the next."""

    address: int
    text: str
    size: int = 0


class Name(msgspec.Struct, forbid_unknown_fields=True):
    """A function."""

    name: str
    address: int


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """A listing."""

    bundles: list[Row]
    functions: list[Name] = []


def decode(text: str, source: str) -> Document:
    """Read a document.

    Raises:
        InputError: it is none.
    """
    try:
        return msgspec.json.decode(text.encode(), type=Document)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        hint = 'write {"bundles": [{"address": 0, "size": 4, "text": "nop"}]}'
        raise InputError(f"{source}: invalid JSON listing: {error}", hint=hint) from None
