"""How long a rendition takes when others wait before it, simulated: a node with some cores that take
renders in the order of their coming, as the service's pool does.

    python3 benches/scale/queues.py

Service times are those of `benches/RESULTS.md` (CPU a request over HTTP), spread as there: the 99th
percentile 1.45 times the median. Requests come at random, independent of each other (Poisson). First a
check: 16 clients that each ask again as soon as they have their answer, on 2 cores, which was measured.
The seed is fixed. Takes about a minute.
"""
import heapq
import math
import random

SPREAD = math.log(1.45) / 2.326
# Milliseconds of one core.
CROP, PREVIEW, THUMBNAIL = 7.6, 20.1, 10.3
STANDARD = [PREVIEW, THUMBNAIL, THUMBNAIL]
RENDERS = 300_000


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def served(rng, mean):
    """A service time with that mean."""
    return mean * math.exp(rng.gauss(0, SPREAD) - SPREAD * SPREAD / 2)


def open_queue(cores, load, means, seed=1):
    """Milliseconds from arrival to answer, at a load from 0 to 1 of the cores."""
    rng = random.Random(seed)
    free, now, times = [0.0] * cores, 0.0, []
    gap = sum(means) / len(means) / cores / load
    for _ in range(RENDERS):
        now += rng.expovariate(1 / gap)
        end = max(now, heapq.heappop(free)) + served(rng, rng.choice(means))
        heapq.heappush(free, end)
        times.append(end - now)
    return times[RENDERS // 10:]


def closed_queue(cores, clients, mean, rounds=20_000, seed=1):
    """The same for clients that ask anew with each answer."""
    rng = random.Random(seed)
    free, asked, times = [0.0] * cores, [0.0] * clients, []
    heapq.heapify(asked)
    for _ in range(rounds):
        begun = heapq.heappop(asked)
        end = max(begun, heapq.heappop(free)) + served(rng, mean)
        heapq.heappush(free, end)
        heapq.heappush(asked, end)
        times.append(end - begun)
    return times[rounds // 10:]


def main():
    times = closed_queue(2, 16, 2000 / 82)
    print(f'16 clients on 2 cores, 82 renders/s: p50 {percentile(times, 0.5):.1f} ms, '
          f'p99 {percentile(times, 0.99):.1f} ms (measured 192.2 and 214.8)')
    for name, means in (('Previews and Thumbnails, 1 to 2', STANDARD), ('crops', [CROP])):
        print(f'\n| {name}: p50, p99 in ms at a load of | 0.5 | 0.6 | 0.7 | 0.8 | 0.9 | 0.95 |')
        print('| --- | --- | --- | --- | --- | --- | --- |')
        for cores in (2, 8, 32):
            cells = []
            for load in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
                times = open_queue(cores, load, means)
                cells.append(f'{percentile(times, 0.5):.0f}, {percentile(times, 0.99):.0f}')
            print(f'| {cores} cores | ' + ' | '.join(cells) + ' |')


if __name__ == '__main__':
    main()
