"""Functions of a program, as symbol tables and listings name them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its name, first address and the address after it."""

    name: str
    address: int
    end: int
