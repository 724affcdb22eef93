"""Reports that only Ascend traces have.

More than 14 modules: one for each report, and what they share.
"""
