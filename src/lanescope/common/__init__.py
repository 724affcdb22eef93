"""Primitives that device families share: joins, pairing, intervals."""
