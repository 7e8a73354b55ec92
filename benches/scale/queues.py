"""How long a rendition takes when others wait before it, simulated: a node with some cores that take
renditions in the order of their coming, as the service's pool does. Standard renditions are sent from the
standard set, between other sizes that are rendered from its base.

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
CROP, PREVIEW, THUMBNAIL, SIZE = 7.6, 0.3, 0.2, 40.0
# Five standard renditions (Preview, WebPreview as a Preview, Thumbnail, CroppedThumbnail) to two other sizes, as in the model.
OPEN = [PREVIEW, PREVIEW, THUMBNAIL, THUMBNAIL] * 5 + [SIZE] * 8
RENDERS = 300_000
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def served(rng, mean):
    """A service time with that mean."""
    return mean * math.exp(rng.gauss(0, SPREAD) - SPREAD * SPREAD / 2)


def open_queue(cores, load, means, seed=1):
    """Mean service time and milliseconds from arrival to answer of each rendition, at a load from 0 to 1 of the cores."""
    rng = random.Random(seed)
    free, now, times = [0.0] * cores, 0.0, []
    gap = sum(means) / len(means) / cores / load
    for _ in range(RENDERS):
        now += rng.expovariate(1 / gap)
        mean = rng.choice(means)
        end = max(now, heapq.heappop(free)) + served(rng, mean)
        heapq.heappush(free, end)
        times.append((mean, end - now))
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


def millis(time):
    return f'{time:.1f}' if time < 1 else f'{time:.0f}'


def print_table(title, means, kinds):
    print(f'\n| {title}: p50, p99 in ms at a load of | ' + ' | '.join(map(str, LOADS)) + ' |')
    print('| --- |' + ' --- |' * len(LOADS))
    for cores in (2, 8, 32):
        runs = [open_queue(cores, load, means) for load in LOADS]
        for kind, of in kinds.items():
            found = [[time for mean, time in run if mean in of] for run in runs]
            cells = [', '.join(millis(percentile(times, share)) for share in (0.5, 0.99)) for times in found]
            print(f'| {cores} cores{kind} | ' + ' | '.join(cells) + ' |')


def main():
    times = closed_queue(2, 16, 2000 / 82)
    print(f'16 clients on 2 cores, 82 renders/s: p50 {percentile(times, 0.5):.1f} ms, '
          f'p99 {percentile(times, 0.99):.1f} ms (measured 192.2 and 214.8)')
    print_table('5 standard renditions to 2 other sizes', OPEN, {', standard': [PREVIEW, THUMBNAIL], ', others': [SIZE]})
    print_table('crops of a Hires', [CROP], {'': [CROP]})


if __name__ == '__main__':
    main()
