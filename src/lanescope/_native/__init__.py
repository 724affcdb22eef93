"""The native core: codecs, writers and Arrow export, built from native/."""

from __future__ import annotations


def why_missing() -> str:
    """Return why the built module cannot be loaded; empty if it can."""
    try:
        from lanescope._native import core  # noqa: F401
    except ImportError as error:
        return str(error)
    return ""
