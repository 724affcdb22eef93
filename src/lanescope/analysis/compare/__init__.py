"""Comparison of runs: what is slower, faster, new or gone, with the run as the unit of evidence.

``run_summary`` makes numbers of one trace, ``comparison`` compares those of two sides, ``series`` those of many runs in
order, ``baseline`` those of one run with runs that were kept.
"""
