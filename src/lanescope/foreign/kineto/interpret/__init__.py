"""Records to meaning: what an event is, and which belong together."""
