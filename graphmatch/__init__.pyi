"""The public names of `graphmatch`, with the modules that define them."""

from graphmatch.engine import Engine as Engine
from graphmatch.enrichment import Entailment as Entailment
from graphmatch.enrichment import OntologyUpdate as OntologyUpdate
from graphmatch.explain.evidence import Evidence as Evidence
from graphmatch.explain.explanation import Explanation as Explanation
from graphmatch.explain.index_plan import IndexPlan as IndexPlan
from graphmatch.lint import Linter as Linter
from graphmatch.lint import LintWarning as LintWarning
from graphmatch.matcher import DuplicateSubscriptionError as DuplicateSubscriptionError
from graphmatch.matcher import Matcher as Matcher
from graphmatch.matcher import UnknownSubscriptionError as UnknownSubscriptionError
from graphmatch.matcher import UnsupportedError as UnsupportedError
from graphmatch.operators.operator import MissingOperatorError as MissingOperatorError
from graphmatch.operators.operator import Operator as Operator
from graphmatch.operators.operator import OperatorIndex as OperatorIndex
from graphmatch.operators.operator import load_operators as load_operators
from graphmatch.operators.operator import operator as operator
from graphmatch.operators.reasoner import Reasoner as Reasoner
from graphmatch.operators.shacl import Shacl as Shacl
from graphmatch.operators.similar import Similar as Similar
from graphmatch.operators.within import Near as Near
from graphmatch.operators.within import Within as Within
from graphmatch.prepared import PreparedQuery as PreparedQuery
from graphmatch.report import Call as Call
from graphmatch.report import Counters as Counters
from graphmatch.report import EventReports as EventReports
from graphmatch.report import Match as Match
from graphmatch.report import MatchReport as MatchReport
from graphmatch.report import MatchReports as MatchReports
from graphmatch.report import Results as Results
from graphmatch.report import UndecidedSubscription as UndecidedSubscription
from graphmatch.snapshot import SavedError as SavedError
from graphmatch.subscription import AttributeSubscription as AttributeSubscription
from graphmatch.subscription import Subscription as Subscription
from graphmatch.subscription import SubscriptionParser as SubscriptionParser
from graphmatch.subscription_files import read_subscriptions as read_subscriptions
from graphmatch.subscription_files import subscribe_topics as subscribe_topics
from graphmatch.topics import Topics as Topics
from semantic.terms import Solution as Solution

__version__: str
