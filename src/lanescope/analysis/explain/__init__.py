"""What bounds a run, what of it is exposed, what is uncertain and what was not recorded: at most five sentences."""

from lanescope.analysis.explain.evidence import Evidence
from lanescope.analysis.explain.verdicts import MOST, VERDICTS, Verdict, explain

__all__ = ["MOST", "VERDICTS", "Evidence", "Verdict", "explain"]
