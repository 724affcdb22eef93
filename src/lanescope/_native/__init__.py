"""The native core: codecs, writers and Arrow export, built from native/."""
