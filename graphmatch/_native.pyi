"""The compiled core."""
