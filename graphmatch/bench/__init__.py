"""How long things take, and how much memory: what `graphmatch bench` measures."""
