"""Datasets: the captures of many runs and ranks as hive-partitioned Parquet, with one small record per capture.

::

    DATASET/
        lanescope-dataset.json                                  marks the folder, and the version of its layout
        _captures/SHA256.json                                   record of a capture; writing it is the commit
        _failed/KEY.json                                        a file that could not be read, with the reason
        _schemas/SHA256.json                                    declarations of tables, shared by many captures
        _compacted/00000001.json                                files that took the place of those of small captures
        table=slices/run=R/rank=K/SHA256-00000.parquet          rows of one capture
        table=slices/run=R/compacted/SHA256-00000.parquet       rows of many captures

Readers take the files that records name, and no others: what a process left behind that was killed does not count.
"""
