"""The measurements of time and memory of `graphmatch bench`."""
