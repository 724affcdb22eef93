"""From AIE frames to meaning: states, invocations, alignment across tiles."""
