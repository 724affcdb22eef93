"""Plausibility of a trace: rules LS501 to LS510 compare each lane with everything else that was recorded."""
