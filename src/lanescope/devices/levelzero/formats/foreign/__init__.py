"""CTF traces of any producer, LTTng and THAPI first -> the event model and points in time."""
