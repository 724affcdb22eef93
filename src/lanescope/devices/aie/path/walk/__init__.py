"""The walk through a program along its trace."""
