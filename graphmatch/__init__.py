"""Says which of many standing subscriptions a new RDF graph matches, and with which bindings."""

from graphmatch.engine import Engine
from graphmatch.matcher import Match, Matcher, MatchReport, Solution

__all__ = ["Engine", "Match", "MatchReport", "Matcher", "Solution"]
