"""Perfetto traces of other tools, and those that lanescope writes itself."""
