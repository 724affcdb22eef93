"""Reports that only Ascend traces have."""
