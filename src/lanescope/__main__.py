"""``python -m lanescope``."""

import sys

from lanescope.cli import program

sys.exit(program())
