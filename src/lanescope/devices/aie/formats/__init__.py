"""AIE trace bytes: packets, frames, events and registers as data, readers and writers."""
