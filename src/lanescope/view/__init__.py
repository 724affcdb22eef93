"""What people look at: text for terminals, and the Perfetto UI served to this machine's browser."""
