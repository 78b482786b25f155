"""What the algorithms on attributes have in common: conjunctions, events, and how they meet."""
