"""Rules and analyses of this family."""
