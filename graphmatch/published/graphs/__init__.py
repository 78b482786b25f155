"""What the algorithms on graphs have in common."""
