"""Commands that only AI engines have."""
