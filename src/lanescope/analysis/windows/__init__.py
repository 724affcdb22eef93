"""Windows: what part of a trace is asked for, and the cutting of its batches."""
