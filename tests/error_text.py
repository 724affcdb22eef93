"""The layout of errors on standard error."""

import re


def is_one_error(text):
    """Return whether a text is exactly one error: one line with the problem, and at most one with a hint."""
    return re.fullmatch(r"lanescope: (internal )?error: [^\n]+\n(  hint: [^\n]+\n)?", text) is not None
