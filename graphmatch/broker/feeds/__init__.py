"""Feeds that the broker polls or receives from WebSub hubs."""
