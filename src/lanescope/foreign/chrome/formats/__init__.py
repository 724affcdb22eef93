"""The text: events and what surrounds them."""
