"""What an explanation is made of: gates and shapes, the first failure, and the nearest miss."""
