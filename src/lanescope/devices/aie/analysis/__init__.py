"""Questions that only traces of AI engines answer."""
