"""The public names of `semantic`, with the modules that define them."""

from semantic.annotation.annotate import Annotator as Annotator
from semantic.annotation.annotate import Label as Label
from semantic.attributes.events import Event as Event
from semantic.attributes.events import read_events as read_events
from semantic.errors import GraphMatchError as GraphMatchError
from semantic.errors import InputError as InputError
from semantic.errors import OntologyError as OntologyError
from semantic.errors import Place as Place
from semantic.errors import Problem as Problem
from semantic.errors import ProblemWarning as ProblemWarning
from semantic.errors import Severity as Severity
from semantic.errors import SubscriptionError as SubscriptionError
from semantic.errors import UnknownNameError as UnknownNameError
from semantic.limits import Limits as Limits
from semantic.ontology.ontology import Ontology as Ontology
from semantic.ontology.synonyms import SynonymOptions as SynonymOptions
from semantic.progress import Progress as Progress
from semantic.publication import Publication as Publication
from semantic.reading import SplitBy as SplitBy
from semantic.reading import read_publications as read_publications
from semantic.tables import publications_from_arrow as publications_from_arrow
