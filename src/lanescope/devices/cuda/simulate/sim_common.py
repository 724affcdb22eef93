"""What simulations of all layouts have in common: their files, and the groups of their kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lanescope.devices.cuda.interpret.names import NEIGHBOUR
from lanescope.devices.cuda.simulate.sim_kernel import EVENTS, Setup

_NAME = "attention"


def files(content: bytes, truth: Mapping[str, Any], suffix: str = ".npy") -> dict[str, bytes]:
    """Return the files of a simulation: the buffer and the names of its events and groups."""
    names = {"events": EVENTS, "groups": [group["name"] for group in truth["groups"]]}
    return {f"{_NAME}{suffix}": content, f"{_NAME}{NEIGHBOUR}": json.dumps(names).encode()}


def groups_of(setup: Setup) -> list[dict[str, Any]]:
    """Describe the groups: the computing ones have most warps; the first thread of each is its leader, who writes."""
    found = []
    first = 0
    computing = sum(setup.role(group) == "compute" for group in range(setup.groups))
    for group in range(setup.groups):
        role = setup.role(group)
        threads = setup.threads[group] if setup.threads else 128 if role in ("compute", "all") else 32
        number = f" {group - 1}" if role == "compute" and computing > 1 else ""
        name = f"threads {first} to {first + threads - 1}" if role == "all" else f"{role}{number}"
        found.append({"name": name, "threads": threads, "leader": first})
        first += threads
    return found
