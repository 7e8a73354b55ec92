"""How many requests a cache answers when popularity falls as a power of the rank (Zipf's law).

Objects are taken in bins of ranks, so that there may be billions of them. Time is counted in requests
to the first cache. Both caches forget what was not asked for the longest (LRU), by Che's
approximation: what was asked for within a time that depends on the cache's size is there.
"""
import math


def bins(objects, exponent, per_decade=200):
    """Pairs of how many objects, and the part of all requests that each of them gets."""
    edges, rank = [1.0], 1.0
    while rank < objects:
        rank = min(max(rank + 1, rank * 10 ** (1 / per_decade)), float(objects))
        edges.append(rank)
    found = [(1.0, 1.0)]
    for low, high in zip(edges, edges[1:]):
        # The objects behind `low` up to `high`, at the mean of the power over them.
        start, end = low + 0.5, high + 0.5
        if exponent == 1:
            weight = math.log(end / start)
        else:
            weight = (end ** (1 - exponent) - start ** (1 - exponent)) / (1 - exponent)
        found.append((high - low, weight / (high - low)))
    total = sum(count * weight for count, weight in found)
    return [(count, weight / total) for count, weight in found]


def solve(wanted, of, low=1.0, high=1e18):
    """The number at which `of`, which rises, comes to `wanted`."""
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if of(middle) < wanted else (low, middle)
    return high


def first(found, hits):
    """The first cache that answers the part `hits`: its objects and the time that it keeps them."""
    kept = solve(hits, lambda time: sum(n * rate * -math.expm1(-rate * time) for n, rate in found))
    return sum(n * -math.expm1(-rate * kept) for n, rate in found), kept


def behind(found, kept, capacity, nodes, shared):
    """The part of what the first cache lets through that `nodes` caches of `capacity` objects answer.

    `shared`: each object has one node; else every node gets any object in its turn.
    """
    # The first cache lets an object through after a gap of more than `kept`; from then on its next
    # passage is at least that far, and its mean follows from the rate of such gaps. In turn, a node
    # sees one passage of as many as there are nodes.
    passing = []
    for count, rate in found:
        through = rate * math.exp(-min(rate * kept, 700)) / (1 if shared else nodes)
        if through * count > 1e-15:
            passing.append((count, through, 1 / (1 / through - kept)))

    def time_in(through, later, time):
        if time <= kept:
            return through * time
        return through * (kept - math.expm1(-later * (time - kept)) / later)

    room = capacity * nodes if shared else capacity
    time = solve(room, lambda time: sum(n * time_in(rate, later, time) for n, rate, later in passing))
    if time <= kept:
        return 0.0
    hits = sum(n * through * -math.expm1(-later * (time - kept)) for n, through, later in passing)
    return hits / sum(n * through for n, through, _ in passing)
