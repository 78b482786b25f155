"""GraphFrames: the papers' baselines in bulk, and a big graph cut into connected parts."""
