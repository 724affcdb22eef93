"""What the packets mean: one clock, threads, arrows, and the traces that lanescope wrote."""
