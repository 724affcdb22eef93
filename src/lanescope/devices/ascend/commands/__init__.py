"""Commands that only Ascend captures have."""
