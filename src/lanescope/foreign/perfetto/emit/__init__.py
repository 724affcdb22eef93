"""Tables of the timeline."""
