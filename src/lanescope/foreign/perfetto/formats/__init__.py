"""Packets of the file: found, unpacked, read; and a writer of small ones."""
