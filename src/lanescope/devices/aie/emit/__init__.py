"""From decoded AIE frames to trace tables: tracks, rows, summaries of recordings."""
