"""What lanescope asks of a family. Only the standard library and the seam are imported here: listing stays cheap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanescope.devices.base import Decoder, Family, Option, Simulation
from lanescope.source import Capture, Head, Match


class Blinker(Family):
    """The family object that the entry point names."""

    name = "blinker"
    title = "Lamp controller of the documentation's recipe"
    streaming = False
    bytes_per_row = 200
    options = (Option("lamps", lambda text: text.split(","), "names of the lamps, in order", metavar="A,B,..."),)
    sim_options = (
        Option("changes", int, "number of changes", default=1000),
        Option("lamps", int, "number of lamps", default=4),
        Option("drop", float, "share of records that get lost", default=0.0),
    )

    def probe(self, head: Head) -> Match:
        """Magic and version decide."""
        if head.data[:6] == b"BLNK\x01\x00":
            return Match(95, "blinker-1", "begins with BLNK, version 1")
        return Match(0)

    def decode(self, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return the decoder."""
        from lanescope_blinker.decode import BlinkerDecoder

        return BlinkerDecoder(capture, options)

    def simulate(self, options: Mapping[str, Any], seed: int) -> Simulation:
        """Make a capture and its truth."""
        from lanescope_blinker.simulate import simulate

        return simulate(seed=seed, **options)

    def tables(self) -> tuple[Any, ...]:
        """Declare the detail tables."""
        from lanescope_blinker.decode import CHANGES

        return (CHANGES,)

    def stats(self) -> tuple[Any, ...]:
        """Declare the stats."""
        from lanescope_blinker.decode import STATS

        return STATS

    def formats(self) -> tuple[Any, ...]:
        """Declare the wire formats."""
        from lanescope_blinker.layout import HEADER, RECORD

        return (HEADER, RECORD)


FAMILY = Blinker()
