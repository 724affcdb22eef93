"""What only traces of Perfetto tell."""
