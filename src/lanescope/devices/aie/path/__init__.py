"""From execution-mode records and a listing of the program to the path that a core took."""
