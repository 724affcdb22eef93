"""Functions of a program, from its listing or its ELF file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its name, first address and the address behind it."""

    name: str
    address: int
    end: int
