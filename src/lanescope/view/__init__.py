"""Output for people: text for terminals, and the Perfetto UI served to this machine's browser."""
