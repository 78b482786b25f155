"""The broker: standing subscriptions as a service, on `graphmatch.Engine`.

Needs the extra ``broker``; ``graphmatch serve`` starts it.
"""
