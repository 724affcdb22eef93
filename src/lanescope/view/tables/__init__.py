"""Tables of text: what a column holds, how a value is shown, and how a table fits a line."""
