"""The commands, apart from reading the command line."""
