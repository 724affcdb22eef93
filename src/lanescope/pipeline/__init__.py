"""Pipeline from a capture to a trace, a report or a file: detection, sources, the driver, sinks."""
