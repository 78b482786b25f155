"""The broker: standing subscriptions as a service, on `graphmatch.Engine`.

Needs ``pip install "graphmatch[broker]"``; ``graphmatch serve`` starts it.
"""
