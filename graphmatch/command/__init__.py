"""What the command does, apart from reading its command line."""
