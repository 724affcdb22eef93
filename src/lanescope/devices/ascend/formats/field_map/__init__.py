"""Where the declared fields of a capture lie, and which other values they could hold."""
