"""Events as rows of a trace."""
