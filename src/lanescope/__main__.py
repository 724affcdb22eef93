"""``python -m lanescope``."""

import sys

from lanescope.cli import main

sys.exit(main())
