"""Regions of interest of Level Zero programs in Python that run under ``lanescope record``.

Example:
    >>> import lanescope.levelzero
    >>> lanescope.levelzero.start()   # False: this process is not recorded
    False
"""

from __future__ import annotations

import os

__all__ = ["start", "stop"]


def start() -> bool:
    """Begin to record, in all threads of the process; return whether the process runs under ``lanescope record``."""
    return _call("lanescope_ze_start")


def stop() -> bool:
    """Stop recording until the next ``start``; operations of the device that are under way are still reported.

    Returns:
        Whether the process runs under ``lanescope record``.
    """
    return _call("lanescope_ze_stop")


def _call(name: str) -> bool:
    path = os.environ.get("LANESCOPE_ZE_LIBRARY", "")
    if not path:
        return False
    import ctypes

    try:
        function = ctypes.CDLL(path)[name]
    except (OSError, AttributeError):
        return False
    function.argtypes, function.restype = [], None
    function()
    return True
