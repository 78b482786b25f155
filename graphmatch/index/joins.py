"""The join of a row's patterns, compiled.

A row is copied beside its variables; so each place of a pattern, whatever it is, is one element of
this *frame*, and a step of a plan is one look-up in the publication's chains. Only new variables
are written to: a look-up that reads what the one before wrote has to wait for it. Steps are gone
through depth first; only those that found more than one triple are come back to.
"""

from __future__ import annotations

from graphmatch.index.chains import COUNT, STATED, TRIPLES, cell_of, nexts_of
from graphmatch.index.comparing import ASK, LEFT, MAYBE, NO, YES, Values, compare
from graphmatch.index.gates import ANY, KINDS
from graphmatch.index.terms import Ids
from semantic.jit import at, part

NOBODY, SPARE, BEFORE = range(3)
"""A frame: `ANY` to read, an element to write what nobody reads; variables, then the row."""
SLOT = 8
"""A row's number is where it begins in the arena, in slots of so many elements."""
HEADER = 3
PLAN, GATE, POSITION = range(HEADER)
"""The head of a row: where its plan is (doubled, plus 1 where any solution will do), its gate, and
its position among the gate's rows. Its constants follow, each once that is a subject or object."""

STEPS, VARIABLES, WIDTH, FIRST = range(4)
"""A plan: how many steps (patterns) and variables it has, how many constants a row of it has, and
then its steps. Before it is its program's number. All plans begin with the most steps
(at `STEPS`) and the most elements of a frame (at `VARIABLES`) that any has."""
KIND, READ, WRITE, MORE = 0, 1, 4, 7
STEP = 8
"""A step: which of its places are known (`ANY_PROPERTY` more where the property is a variable that
is known), three elements of the frame to read (`NOBODY` where a
variable is new), three to write (`SPARE` where it is not), and where the rest is, or 0: whether a
new variable is there twice (then all are written), and how many checks; then operator, variable
and constant of each."""
ANY_PROPERTY = KINDS
TWICE, CHECKS, FIRST_CHECK = range(3)
CHECK = 3

STATE = 3
NEXT, EARLIER, UNDECIDED = range(STATE)
"""By depth of a join, where there is a choice: the next triple, the depth of the choice before, and
how far the solution is undecided."""


@part
def slots_of(plan: int, code: Ids) -> int:
    """Return how many slots the rows of a plan take."""
    return (HEADER + int(code[at(plan + WIDTH)]) + SLOT - 1) // SLOT


@part
def frame(row: int, plan: int, arena: Ids, code: Ids, stack: Ids) -> None:
    """Copy a row to where a join reads it: after the variables."""
    stack[NOBODY] = ANY
    begin = BEFORE + int(code[at(plan + VARIABLES)])
    for slot in range(slots_of(plan, code)):
        for n in range(SLOT):
            stack[at(begin + slot * SLOT + n)] = arena[at((row + slot) * SLOT + n)]


@part
def _same(more: int, s: int, p: int, o: int, step: int, code: Ids, stack: Ids) -> bool:
    """Whether places that are written to twice got one term."""
    return bool(
        code[at(more + TWICE)] == 0
        or (
            stack[at(code[at(step + WRITE)])] == s
            and stack[at(code[at(step + WRITE + 1)])] == p
            and stack[at(code[at(step + WRITE + 2)])] == o
        )
    )


@part
def _checked(more: int, code: Ids, stack: Ids, values: Values) -> int:
    """Decide the checks of a step: NO, or YES with what is not decided: MAYBE, LEFT or both."""
    answer = YES
    first = more + FIRST_CHECK
    for check in range(first, first + CHECK * code[at(more + CHECKS)], CHECK):
        one = LEFT
        if code[at(check)] != ASK:
            one = compare(
                int(stack[at(code[at(check + 1)])]),
                int(stack[at(code[at(check + 2)])]),
                code[at(check)],
                values,
            )
        if one == NO:
            return NO
        answer |= one
    return answer


@part
def join(
    plan: int,
    any_will_do: int,
    graph: Ids,
    code: Ids,
    values: Values,
    stack: Ids,
    solutions: Ids,
) -> tuple[int, int]:
    """Find the solutions of a row in its frame; return how many, and how many are undecided.

    `solutions[0]` says where to write; each solution is how far it is undecided (0, MAYBE, LEFT or
    both), and a term a variable. When there is no room left, the number is -1.
    """
    n = int(graph[COUNT])
    steps, variables = int(code[at(plan + STEPS)]), int(code[at(plan + VARIABLES)])
    states = int(code[VARIABLES])
    end = int(solutions[0])
    found = undecided = maybe = depth = 0
    choice = t = -1
    while True:
        while depth < steps:
            step = plan + FIRST + STEP * depth
            kind, seen = int(code[at(step + KIND)]), n
            if kind >= ANY_PROPERTY:
                kind, seen = kind - ANY_PROPERTY, int(graph[STATED])
            if t < 0:
                s = int(stack[at(code[at(step + READ)])])
                p = int(stack[at(code[at(step + READ + 1)])])
                o = int(stack[at(code[at(step + READ + 2)])])
                t = int(graph[at(cell_of(graph, kind, s, p, o))])
                if t < 0 or t >= seen:
                    break
            following = graph[at(nexts_of(graph, kind) + t)]
            if 0 <= following < seen:
                state = states + STATE * depth
                stack[at(state + NEXT)] = following
                stack[at(state + EARLIER)] = choice
                stack[at(state + UNDECIDED)] = maybe
                choice = depth
            s = int(graph[at(TRIPLES + t)])
            p = int(graph[at(TRIPLES + n + t)])
            o = int(graph[at(TRIPLES + 2 * n + t)])
            stack[at(code[at(step + WRITE)])] = s
            stack[at(code[at(step + WRITE + 1)])] = p
            stack[at(code[at(step + WRITE + 2)])] = o
            t = -1
            more = int(code[at(step + MORE)])
            if more:
                if not _same(more, s, p, o, step, code, stack):
                    break
                answer = _checked(more, code, stack, values)
                if answer == NO:
                    break
                maybe |= answer & (MAYBE | LEFT)
            depth += 1
        if depth == steps:
            if end + variables + 1 > solutions.size:
                return -1, 0
            solutions[at(end)] = maybe
            for v in range(variables):
                solutions[at(end + 1 + v)] = stack[at(BEFORE + v)]
            end += variables + 1
            found += 1
            undecided += maybe != 0
            if any_will_do and not maybe:
                break
        if choice < 0:
            break
        depth = choice
        state = states + STATE * depth
        t = int(stack[at(state + NEXT)])
        choice = int(stack[at(state + EARLIER)])
        maybe = int(stack[at(state + UNDECIDED)])
    solutions[0] = end
    return found, undecided
