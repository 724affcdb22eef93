"""Buffer layouts as data: a TOML file declares where records are and what their fields mean.

More than 14 modules: the language of declarations, their reference codec, and the decoder are a few modules each.
"""
