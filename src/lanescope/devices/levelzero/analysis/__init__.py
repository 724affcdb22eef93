"""Reports that only Level Zero traces have."""
