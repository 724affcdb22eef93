"""Traces of other tools, a folder for each, behind the same seam as the device families."""
