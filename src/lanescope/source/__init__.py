"""Input files: plain, pipes, compressed, and sidecar files. Independent of trace formats."""

from lanescope.source.capture import Capture, is_one
from lanescope.source.detection import CERTAIN, HEAD_BYTES, MINE, TIE, Detection, FileHead
from lanescope.source.file import CHUNK_BYTES, Source, SpooledFile
from lanescope.source.reader import Reader

__all__ = [
    "CERTAIN",
    "CHUNK_BYTES",
    "HEAD_BYTES",
    "MINE",
    "TIE",
    "Capture",
    "Detection",
    "FileHead",
    "Reader",
    "Source",
    "SpooledFile",
    "is_one",
]
