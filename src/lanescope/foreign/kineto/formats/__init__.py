"""The layout of Kineto files, and what reads it."""
