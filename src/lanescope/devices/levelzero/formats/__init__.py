"""Level Zero traces as data: THAPI text and CTF, readers.

More than 14 modules: two forms, the APIs besides Level Zero, and what the readers share.
"""
