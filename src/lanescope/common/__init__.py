"""What device families share: joins, pairing, intervals."""
