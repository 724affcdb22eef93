"""Critical path: what each nanosecond of a window waited for, what could be later, and what a change would gain."""
