"""From a capture to a trace: detection, decoding, merging."""
