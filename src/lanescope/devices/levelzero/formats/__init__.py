"""Level Zero traces as data: THAPI text and CTF, readers."""
