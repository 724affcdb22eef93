"""Analyses that only CUDA traces have."""
