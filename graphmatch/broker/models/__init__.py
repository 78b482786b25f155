"""Domain objects of the broker, which are also the bodies of requests and responses."""
