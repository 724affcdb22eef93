"""What outputs draw, without drawing it: tree, strips, colours, verdicts, tables, numbers, level of detail."""
