"""How many nodes of a tree of equality tests a random event visits at the most.

The theorem of Aguilera and others (PODC 1999, section 4), derived anew from its two lemmas, for our
text of the paper has no formulas: K attributes have V values each, there are N subscriptions, and
an event has each value with the same probability. A node with j values on its path is then visited
by a share V^-j of all events.

- Lemma 1: there are at most C(K + 1, j + 1) V^j such nodes. A path's length and the places of its j
  values are j + 1 different ones of K + 1 numbers, and there are V^j choices of values.
- Lemma 2: there are at most 1 + K N nodes, for a subscription adds at most one for each attribute.

So the sum of all shares is not larger than if the nodes with the least j were all there.
"""

from __future__ import annotations

from math import comb, log, pow


def expected_bound(attributes: int, values: int, subscriptions: int) -> float:
    """Return how many nodes a random event visits on average at the most, whatever is subscribed.

    It holds for the tree with and without collapsing and successor sets, which only save visits; a
    tree with index attributes has more nodes than lemma 2 says.

    Parameters
    ----------
    attributes, values, subscriptions
        K, V and N.

    Examples
    --------
    >>> [round(expected_bound(10, 5, n)) for n in (1000, 10_000, 100_000)]
    [276, 648, 1236]
    """
    left, share, visited = 1 + attributes * subscriptions, 1.0, 0.0
    for j in range(attributes + 1):
        nodes = min(left, comb(attributes + 1, j + 1) * int(values**j))
        visited += nodes * share
        left -= nodes
        share /= values
    return visited


def closed_bound(attributes: int, values: int, subscriptions: int) -> float:
    """Return a larger bound that shows its growth: O(N^(1 - λ)), λ = ln V / (ln V + ln K).

    As C(K + 1, j + 1) V^j <= (K + 1) (K V)^j, fewer than a (K V)^j nodes have less than j values,
    with a = (K + 1) / (K V - 1). So the x-th node has a share of at most V (x / a)^-λ, and the
    integral from 0 to n = 1 + K N is V a^λ n^(1 - λ) / (1 - λ). K and V are 2 at least.

    Examples
    --------
    >>> round(closed_bound(5, 5, 40_000) / closed_bound(5, 5, 10_000), 3)
    2.0
    """
    growth = log(attributes) / log(attributes * values)
    factor = pow((attributes + 1) / (attributes * values - 1), 1 - growth)
    return values * factor * pow(1 + attributes * subscriptions, growth) / growth
