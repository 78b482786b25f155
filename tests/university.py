"""A university whose departments are publications, and 14 queries about them.

The classes, properties and questions follow the Lehigh University Benchmark: Y. Guo, Z. Pan,
J. Heflin, LUBM: A benchmark for OWL knowledge base systems, Journal of Web Semantics 3 (2005).
The ontology, the generator and the queries here are new.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import TYPE, Namespace

UNIVERSITY = Namespace("http://example.org/university#")
DATA = Namespace("http://example.org/")

PREFIXES = f"""
PREFIX : <{UNIVERSITY.iri}>
PREFIX d: <{DATA.iri}>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""

_ONTOLOGY = """
:Organization a owl:Class .
:University rdfs:subClassOf :Organization .
:Department rdfs:subClassOf :Organization .
:ResearchGroup rdfs:subClassOf :Organization .

:Person a owl:Class .
:Employee owl:equivalentClass [ owl:intersectionOf (:Person
    [ a owl:Restriction ; owl:onProperty :worksFor ; owl:someValuesFrom :Organization ]) ] .
:Faculty rdfs:subClassOf :Employee .
:Lecturer rdfs:subClassOf :Faculty .
:Professor rdfs:subClassOf :Faculty .
:FullProfessor rdfs:subClassOf :Professor .
:AssociateProfessor rdfs:subClassOf :Professor .
:AssistantProfessor rdfs:subClassOf :Professor .
:Chair rdfs:subClassOf :Professor ; owl:equivalentClass [ owl:intersectionOf (:Person
    [ a owl:Restriction ; owl:onProperty :headOf ; owl:someValuesFrom :Department ]) ] .
:Student owl:equivalentClass [ owl:intersectionOf (:Person
    [ a owl:Restriction ; owl:onProperty :takesCourse ; owl:someValuesFrom :Course ]) ] .
:UndergraduateStudent rdfs:subClassOf :Student .
:GraduateStudent rdfs:subClassOf :Person ,
    [ a owl:Restriction ; owl:onProperty :takesCourse ; owl:someValuesFrom :GraduateCourse ] .
:TeachingAssistant owl:equivalentClass [ owl:intersectionOf (:Person
    [ a owl:Restriction ; owl:onProperty :teachingAssistantOf ; owl:someValuesFrom :Course ]) ] .
:UndergraduateStudent owl:disjointWith :Faculty .

:Course a owl:Class .
:GraduateCourse rdfs:subClassOf :Course .
:Publication a owl:Class .
:Article rdfs:subClassOf :Publication .
:Book rdfs:subClassOf :Publication .

:headOf rdfs:subPropertyOf :worksFor .
:worksFor rdfs:subPropertyOf :memberOf .
:memberOf rdfs:domain :Person ; rdfs:range :Organization ; owl:inverseOf :member .
:subOrganizationOf a owl:TransitiveProperty ;
    rdfs:domain :Organization ; rdfs:range :Organization .
:undergraduateDegreeFrom rdfs:subPropertyOf :degreeFrom .
:mastersDegreeFrom rdfs:subPropertyOf :degreeFrom .
:doctoralDegreeFrom rdfs:subPropertyOf :degreeFrom .
:degreeFrom rdfs:domain :Person ; rdfs:range :University ; owl:inverseOf :hasAlumnus .
:advisor rdfs:domain :Person ; rdfs:range :Professor .
:teacherOf rdfs:domain :Faculty ; rdfs:range :Course .
:takesCourse rdfs:range :Course .
:publicationAuthor rdfs:domain :Publication ; rdfs:range :Person .
:name a owl:DatatypeProperty .
:emailAddress a owl:DatatypeProperty .
:telephone a owl:DatatypeProperty .
"""

QUERIES = tuple(
    PREFIXES + f"SELECT DISTINCT * {{ {pattern} }}"
    for pattern in (
        "?x a :GraduateStudent ; :takesCourse d:department0-graduate-course0",
        "?x a :GraduateStudent ; :memberOf ?z ; :undergraduateDegreeFrom ?y ."
        " ?y a :University . ?z a :Department ; :subOrganizationOf ?y",
        "?x a :Publication ; :publicationAuthor d:department0-assistant0",
        "?x a :Professor ; :worksFor d:department0 ;"
        " :name ?name ; :emailAddress ?address ; :telephone ?telephone",
        "?x a :Person ; :memberOf d:department0",
        "?x a :Student",
        "?x a :Student ; :takesCourse ?y . d:department0-associate0 :teacherOf ?y . ?y a :Course",
        "?x a :Student ; :memberOf ?y ; :emailAddress ?z ."
        " ?y a :Department ; :subOrganizationOf d:university0",
        "?x a :Student ; :advisor ?y ; :takesCourse ?z ."
        " ?y a :Faculty ; :teacherOf ?z . ?z a :Course",
        "?x a :Student ; :takesCourse d:department0-graduate-course0",
        "?x a :ResearchGroup ; :subOrganizationOf d:university0",
        "?x a :Chair ; :worksFor ?y . ?y a :Department ; :subOrganizationOf d:university0",
        "?x a :Person . d:university0 :hasAlumnus ?x",
        "?x a :UndergraduateStudent",
    )
)
"""The queries in the order of the benchmark. Those that name a department name the first."""


def ontology() -> list[Triple]:
    """Return the ontology."""
    quads = parse(PREFIXES + _ONTOLOGY, format=RdfFormat.TURTLE)
    return [(quad.subject, quad.predicate, quad.object) for quad in quads]


def department(number: int, size: int) -> Publication:
    """Return a department; a larger size has more people and courses."""
    return Publication.of(f"urn:department{number}", _Department(number).triples(size))


class _Department:
    def __init__(self, number: int) -> None:
        self.name = f"department{number}"
        self.chance = random.Random(number)

    def term(self, kind: str, number: int) -> NamedNode:
        return DATA[f"{self.name}-{kind}{number}"]

    def university(self) -> NamedNode:
        return DATA[f"university{self.chance.randrange(3)}"]

    def triples(self, size: int) -> Iterator[Triple]:
        """Yield the different triples."""
        faculty = {
            self.term(name, number): kind
            for name, kind in (
                ("full", "FullProfessor"),
                ("associate", "AssociateProfessor"),
                ("assistant", "AssistantProfessor"),
                ("lecturer", "Lecturer"),
            )
            for number in range(size)
        }
        courses = [self.term("course", number) for number in range(len(faculty))]
        advanced = [self.term("graduate-course", number) for number in range(2 * size)]
        found = [*self.organization(size), *self.courses(courses, advanced)]
        for number, (person, kind) in enumerate(faculty.items()):
            found += self.person(person, kind, "worksFor" if number else "headOf")
            found += self.teacher(person, number, (courses[number], *advanced[number : number + 1]))
        professors = [one for one, kind in faculty.items() if kind != "Lecturer"]
        for number in range(4 * size):
            student = self.term("undergraduate", number)
            found += self.person(student, "UndergraduateStudent", "memberOf")
            found += self.student(student, courses, professors if number % 3 == 0 else [])
        for number in range(2 * size):
            student = self.term("graduate", number)
            found += self.person(student, "GraduateStudent", "memberOf")
            found += self.student(student, advanced, professors)
            found.append((student, UNIVERSITY["undergraduateDegreeFrom"], self.university()))
            if number % 2:
                course = self.chance.choice(courses)
                found.append((student, UNIVERSITY["teachingAssistantOf"], course))
        yield from dict.fromkeys(found)

    def organization(self, size: int) -> Iterator[Triple]:
        home = DATA[self.name]
        yield home, TYPE, UNIVERSITY["Department"]
        yield home, UNIVERSITY["subOrganizationOf"], DATA["university0"]
        for number in range(3):
            yield DATA[f"university{number}"], TYPE, UNIVERSITY["University"]
        for number in range(size):
            group = self.term("group", number)
            yield group, TYPE, UNIVERSITY["ResearchGroup"]
            yield group, UNIVERSITY["subOrganizationOf"], home

    def courses(self, courses: list[NamedNode], advanced: list[NamedNode]) -> Iterator[Triple]:
        for kind, some in (("Course", courses), ("GraduateCourse", advanced)):
            for number, course in enumerate(some):
                yield course, TYPE, UNIVERSITY[kind]
                yield course, UNIVERSITY["name"], Literal(f"{kind} {number}")

    def person(self, person: NamedNode, kind: str, relation: str) -> Iterator[Triple]:
        name = person.value.rpartition("/")[2]
        said: dict[str, Term] = {
            relation: DATA[self.name],
            "name": Literal(name),
            "emailAddress": Literal(f"{name}@example.org"),
            "telephone": Literal(f"555-{self.chance.randrange(10_000):04}"),
        }
        yield person, TYPE, UNIVERSITY[kind]
        for property_, value in said.items():
            yield person, UNIVERSITY[property_], value

    def teacher(
        self, person: NamedNode, number: int, courses: tuple[NamedNode, ...]
    ) -> Iterator[Triple]:
        for course in courses:
            yield person, UNIVERSITY["teacherOf"], course
        for degree in ("undergraduate", "masters", "doctoral"):
            yield person, UNIVERSITY[f"{degree}DegreeFrom"], self.university()
        for one in range(self.chance.randint(1, 3)):
            work = self.term(f"work{number}-", one)
            yield work, TYPE, UNIVERSITY[self.chance.choice(("Article", "Book"))]
            yield work, UNIVERSITY["publicationAuthor"], person

    def student(
        self, person: NamedNode, courses: list[NamedNode], advisors: list[NamedNode]
    ) -> Iterator[Triple]:
        for course in self.chance.sample(courses, self.chance.randint(1, 2)):
            yield person, UNIVERSITY["takesCourse"], course
        if advisors:
            yield person, UNIVERSITY["advisor"], self.chance.choice(advisors)
