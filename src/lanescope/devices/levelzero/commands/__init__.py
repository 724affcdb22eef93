"""Commands that only Level Zero has."""
