"""Buffer layouts as data: a TOML file declares where records are and what their fields mean."""
