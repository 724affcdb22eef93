"""The traced program: listings, ELF files, instructions."""
