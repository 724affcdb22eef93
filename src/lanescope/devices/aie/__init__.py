"""Trace packets of AMD AI engines (AIE2, AIE2P): event state of every traced tile, cycle by cycle."""
