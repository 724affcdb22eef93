"""The plausibility rules, one module each; ``layer`` applies them to the profile of a trace."""
