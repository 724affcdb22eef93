"""Level Zero: host calls and device operations of a program on Intel GPUs, joined exactly."""
