"""Nodes behind a CDN and a balancer, simulated: what part of the requests the nodes' caches answer, how
evenly renders lie, and what happens when a node leaves and comes back.

    python3 benches/scale/caches.py

Popularity follows Zipf's law. The CDN keeps what was asked for last, as much as gives 95 % hits; what it
lets through goes to the nodes as each balancer decides. The same requests for all of them; the seed is
fixed, so the table is the same each time. Takes about a minute.
"""
import bisect
import collections
import hashlib
import itertools
import random

import popularity

OBJECTS, EXPONENT, CDN_HITS = 100_000, 1.1, 0.95
# An item's renditions lie together: three objects an item.
PER_ITEM, NODES, NODE_OBJECTS = 3, 10, 6_600
WARM, REQUESTS = 2_000_000, 22_000_000


class Cache:
    """Forgets what was not asked for the longest."""

    def __init__(self, capacity):
        self.capacity, self.kept = capacity, collections.OrderedDict()

    def ask(self, key):
        if key in self.kept:
            self.kept.move_to_end(key)
            return True
        self.kept[key] = None
        if len(self.kept) > self.capacity:
            self.kept.popitem(last=False)
        return False


def number(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), 'big')


def rendezvous(nodes):
    """The node with the highest hash of node and item."""
    return lambda item: max(nodes, key=lambda node: number(f'{node}/{item}'))


def ring(nodes, count=160):
    """Consistent hashing: points on a ring; nginx has 160 a node, times its weight."""
    points = sorted((number(f'{node}-{point}'), node) for node in nodes for point in range(count))
    places = [place for place, _ in points]
    return lambda item: points[bisect.bisect(places, number(str(item))) % len(points)][1]


def modulo(nodes):
    """A plain hash: the remainder by the number of nodes."""
    return lambda item: nodes[number(str(item)) % len(nodes)]


def in_turn(nodes):
    """Round robin, whatever is asked for."""
    turn = itertools.cycle(nodes)
    return lambda item: next(turn)


def through_cdn():
    """What the CDN lets through, and its part of hits."""
    rng = random.Random(1)
    sums = list(itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(OBJECTS)))
    ranks = list(range(OBJECTS))
    rng.shuffle(ranks)
    capacity, kept = popularity.first(popularity.bins(OBJECTS, EXPONENT), CDN_HITS)
    cdn, passed = Cache(round(capacity)), []
    for done in range(0, REQUESTS, 100_000):
        for at in rng.choices(range(OBJECTS), cum_weights=sums, k=100_000):
            if not cdn.ask(at) and done >= WARM:
                passed.append(ranks[at])
    return passed, 1 - len(passed) / (REQUESTS - WARM), capacity, kept


def serve(passed, policy):
    """Five parts of the requests: two to warm up, all nodes, one node gone, the node back (cold)."""
    names = [f'node-{at}' for at in range(NODES)]
    caches = {name: Cache(NODE_OBJECTS) for name in names}
    part, rows = len(passed) // 5, {}
    alive = [names, names, names, names[:-1], names]
    for at, nodes in enumerate(alive):
        if at == 4:
            caches[names[-1]] = Cache(NODE_OBJECTS)
        place, memo = policy(nodes), {}
        asked, rendered = collections.Counter(), collections.Counter()
        for key in passed[at * part:(at + 1) * part]:
            item = key // PER_ITEM
            node = place(item) if policy is in_turn else memo.get(item) or place(item)
            memo[item] = node
            asked[node] += 1
            rendered[node] += not caches[node].ask(key)
        rows[at] = asked, rendered, len(nodes)
    return rows


def moved(policy):
    """Items that change their node when one of the nodes leaves."""
    names = [f'node-{at}' for at in range(NODES)]
    before, after = policy(names), policy(names[:-1])
    return sum(before(item) != after(item) for item in range(20_000)) / 20_000


def main():
    passed, hits, capacity, kept = through_cdn()
    print(f'{OBJECTS} objects, exponent {EXPONENT}; CDN of {capacity:.0f}: {hits:.3f} hits; '
          f'{len(passed)} requests passed on to {NODES} nodes of {NODE_OBJECTS}')
    found = popularity.bins(OBJECTS, EXPONENT)
    for shared, name in ((True, 'each object at one node'), (False, 'in turn')):
        print(f'by approximation, {name}: {popularity.behind(found, kept, NODE_OBJECTS, NODES, shared):.3f}')
    print('| balancer | hits of the nodes | renders, busiest node to mean | requests, busiest to mean '
          '| items that move when 1 of 10 leaves | hits while it is gone | hits when it is back, cold |')
    print('| --- | --- | --- | --- | --- | --- | --- |')
    for name, policy in (('rendezvous', rendezvous), ('ring, 160 points', ring),
                         ('ring, 1,600 points', lambda nodes: ring(nodes, 1600)),
                         ('hash modulo nodes', modulo), ('round robin', in_turn)):
        rows = serve(passed, policy)
        part = lambda at: 1 - sum(rows[at][1].values()) / sum(rows[at][0].values())
        peak = lambda counts, nodes: max(counts.values()) * nodes / sum(counts.values())
        asked, rendered, nodes = rows[2]
        gone = '–' if policy is in_turn else f'{moved(policy):.3f}'
        print(f'| {name} | {part(2):.3f} | {peak(rendered, nodes):.2f} | {peak(asked, nodes):.2f} '
              f'| {gone} | {part(3):.3f} | {part(4):.3f} |')


if __name__ == '__main__':
    main()
