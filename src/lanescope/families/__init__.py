"""The seam: what a device family declares."""
