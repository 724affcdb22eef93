"""Where the declared fields of a trace lie, and which other values they could hold."""
