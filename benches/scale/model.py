"""The model behind docs/operations/capacity.md: each table of it is a function here.

    python3 benches/scale/model.py            # prints the tables, and what they are computed from
    python3 benches/scale/model.py --write    # puts them into docs/operations/capacity.md
    python3 benches/scale/model.py --check    # fails where the page, the figures and their sources differ

A figure is measured (then a piece of the file that has it is named, and must stand there), assumed, or
computed below from others. To see what other assumptions come to, change them here and print.
"""
import math
import os
import re
import sys

import popularity

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = 'docs/operations/capacity.md'

# Name: value, unit, file, words that stand there.
MEASURED = {
    'CPU of a cached hit of 98 kB': (15.9, 'µs', 'benches/RESULTS.md', '| 63368 | 0.57 | 4.58 | 0 | 5.4 + 10.5 |'),
    'a Preview': (56_900, 'bytes', 'benches/RESULTS.md', '| **79.3 at 56.9** | **70.9 at 5.4** |'),
    'a Thumbnail': (5_400, 'bytes', 'benches/RESULTS.md', '| **79.3 at 56.9** | **70.9 at 5.4** |'),
    'a WebPreview, part of a Preview': (0.31, '', 'benches/RESULTS.md', '1,677 kB as Previews and 519 kB as WebPreviews'),
    'CPU of a kept Preview': (0.3, 'ms', 'benches/RESULTS.md', '**190** | 0.3 / 69.4'),
    'CPU of a kept Thumbnail': (0.2, 'ms', 'benches/RESULTS.md', '**169** | 0.2 / 50.5'),
    'CPU of a size of 800 px, from the base': (40.0, 'ms', 'benches/RESULTS.md', '**1.9** | 40.0 / 68.2'),
    'CPU of a WebP Preview by method 4, from the base': (99.8, 'ms', 'benches/RESULTS.md', '| 1.5 | 99.8 / 151.5'),
    'CPU of a crop 800x600 of a Hires of 24 MP': (7.6, 'ms', 'benches/RESULTS.md', '**16.3** | 7.6 / 126'),
    'CPU of a Hires of 12.4 MB with a mark': (19.0, 'ms', 'benches/RESULTS.md', '**31.8** | 19 / 702'),
    'documents a second of one core': (25_359, '/s', 'benches/RESULTS.md', '36,602 | 25,359 | 5,000'),
    'searches a second of 2 cores over HTTP, 1 M items': (3_098, '/s', 'benches/RESULTS.md', '3,098 to 3,182/s'),
    'searches a second of 2 cores over HTTP, 5 M items': (821, '/s', 'benches/RESULTS.md', '821 to 859/s'),
    'search over HTTP for the first time, p50, 1 M items': (1.1, 'ms', 'benches/RESULTS.md', '1.1 / 4.1 / 14.5 ms'),
    'search over HTTP for the first time, p95, 1 M items': (4.1, 'ms', 'benches/RESULTS.md', '1.1 / 4.1 / 14.5 ms'),
    'search over HTTP for the first time, p50, 5 M items': (2.9, 'ms', 'benches/RESULTS.md', '2.9 / 12.9 / 48 ms'),
    'search over HTTP for the first time, p95, 5 M items': (12.9, 'ms', 'benches/RESULTS.md', '2.9 / 12.9 / 48 ms'),
    'the index on disk, 5 M items': (2_900, 'MB', 'benches/RESULTS.md', '| 13, 2.9 GB |'),
    'memory of a process that is not mapped files, 5 M items': (281, 'MB', 'benches/RESULTS.md', '281; 3,321 MB'),
    'a build of the index, 1 M items': (117, 's', 'benches/RESULTS.md', '117 to 128 s'),
    'a build of the index, 5 M items': (793, 's', 'benches/RESULTS.md', '| 793 s |'),
    'ingest of a photograph of 24 MP, by an earlier version': (205, 'ms', 'benches/RESULTS.md', '24 MP 4:2:0, 12.5 MB: taken in in 205 ms.'),
    'decoding 24 MP on two cores': (120, 'ms', 'benches/RESULTS.md', 'on two cores without the level | 120 ms to decode'),
    'matching with 100,000 queries, p95': (0.53, 'ms', 'benches/RESULTS.md', '| 100,000 | 0.14 ms | 0.53 ms | 5.7 ms | 1,347 | 362 |'),
    'met by an item, news': (362, 'queries', 'benches/RESULTS.md', '| 100,000 | 0.14 ms | 0.53 ms | 5.7 ms | 1,347 | 362 |'),
    'the same with common words, p95': (1.0, 'ms', 'benches/RESULTS.md', '| 100,000 | 0.88 ms | 1.0 ms | 7.1 ms | 18,305 | 3,808 |'),
    'met by an item, common words': (3_808, 'queries', 'benches/RESULTS.md', '| 100,000 | 0.88 ms | 1.0 ms | 7.1 ms | 18,305 | 3,808 |'),
    'memory of a saved query of 100,000': (420, 'bytes', 'benches/RESULTS.md', '420 of a hundred thousand'),
    'memory of a waiting poll': (25_000, 'bytes', 'benches/RESULTS.md', 'What is left of a poll, 25 kB'),
    'a row of items with its indexes': (2_049, 'bytes', 'benches/RESULTS.md', '| `items` | 2,049 |'),
    'a row of item_log': (100, 'bytes', 'benches/RESULTS.md', '| `item_log` | 78 | 22 |'),
    'a row of orders': (281, 'bytes', 'benches/RESULTS.md', '| `orders` | 158 | 123 |'),
    'a row of queued_items': (182, 'bytes', 'benches/RESULTS.md', '| `queued_items` | 68 | 114 |'),
    'purchases a second under the lock': (312, '/s', 'benches/RESULTS.md', '| one purchase | 312 | 338 |'),
    'the same without it, 8 clients': (4_630, '/s', 'benches/RESULTS.md', '| one purchase, no lock | 377 | 4,630 |'),
    'batches of 362 queue rows': (96, '/s', 'benches/RESULTS.md', '| 362 queue rows | 96 | 109 |'),
    'fastest purchase, flush and all': (0.32, 'ms', 'benches/RESULTS.md', 'a purchase takes 0.32 ms then'),
    'requests to the bucket for a crop of a Hires': (38.5, 'requests', 'docs/operations/s3.md', '| 483,247 to 508,251 | 1.6 to 1.7 % | 38 or 39 |'),
    'requests for a rendition from the standard set': (2, 'requests', 'docs/operations/s3.md', 'one later | 526,615; 493,324 | 1.7 %; 1.6 % | 2; 1 |'),
    'bytes of them': (526_615, 'bytes', 'docs/operations/s3.md', 'one later | 526,615; 493,324 | 1.7 %; 1.6 % | 2; 1 |'),
    'side file, part of the original': (0.002, '', 'benches/RESULTS.md', '0.17 % to 0.2 %, 1 % to 4 %'),
    'standard renditions and base of a picture': (309_000, 'bytes', 'benches/RESULTS.md', '309 kB of standard renditions and their base'),
    'requests to the bucket at a time, by default': (64, '', 'docs/reference/settings.md', '| `store.requests` | `64` | requests |'),
    'reads of the store at a time': (64, '', 'src/media/inputs.rs', 'const READS_AT_A_TIME: usize = 64;'),
    'polls of a process, by default': (20_000, '', 'docs/reference/settings.md', '| `notifications.polls` | `20000` | polls |'),
    'days that item_log is kept': (7, 'days', 'src/runtime/limits.rs', 'ITEM_LOG_RETENTION: Duration = Duration::from_secs(7 * 86_400)'),
}

# Name: value, unit, why.
ASSUMED = {
    'items': (1e9, '', 'the goal'),
    'notifications': (1e5, '', 'the goal'),
    'requests at the origin': (50_000, '/s', 'the goal'),
    'hits of the CDN': (0.95, '', 'the goal'),
    'part of the items with a picture': (0.57, '', 'the mix of benches/compare/archive.py'),
    'standard renditions of a picture': (4, '', 'Preview, WebPreview, Thumbnail, CroppedThumbnail (as large as a Thumbnail); asked for equally often'),
    'CPU of a kept WebPreview': (0.3, 'ms', 'not measured: that of a kept Preview, which is larger'),
    'CPU of a WatermarkPreview': (66, 'ms', 'not measured: that of 800 px, by the pixels; counted in the table of Caches only'),
    'exponent of popularity': (1.1, '', "Zipf; what a CDN's 95 % need: see Caches"),
    'an original': (5e6, 'bytes', '24 megapixels as cameras write them; photographs of benches/RESULTS.md have 2.1 to 12.5 MB'),
    'originals that need a working copy': (0.05, '', 'progressive and others'),
    'years of the archive': (20, 'years', ''),
    'items a day now, to the mean of those years': (3, '', 'archives grow'),
    'busiest second to the mean': (10, '', 'elections, finals'),
    'versions of an item': (3, '', 'corrections'),
    'cores of a node': (32, '', 'each as one of those measured, 2 GHz'),
    'memory of a node': (128e9, 'bytes', ''),
    'disk for renditions of a node': (2e12, 'bytes', 'NVMe; cache.disk_bytes without what cache.crops_share takes'),
    'listing a file of that cache at the start': (7.5, 'µs', 'directories in memory; tried once with 200,000 empty files'),
    'memory of such a file in the index': (250, 'bytes', 'key, weight, counters'),
    'load to aim at': (0.6, '', 'see Waiting'),
    'media nodes': (12, '', 'chosen; two of them may be away'),
    'time to the first byte of the bucket': (0.02, 's', ''),
    'round trip to the database': (0.25, 'ms', 'one data centre'),
    'statements of a purchase, with begin, lock and commit': (6, '', ''),
    'flush of a good disk': (0.1, 'ms', 'NVMe that keeps its cache without power'),
    'a replica that must have it': (0.5, 'ms', 'another data centre near by'),
    'CPU of a call of other APIs': (1, 'ms', ''),
    'items in a shard': (1e8, 'items', 'see Search'),
    'price of a core': (0.04, '€ an hour', 'example, not an offer'),
    'price of requests to the bucket': (0.40, '€ a million', 'example, not an offer'),
    'price of keeping': (0.02, '€ a GB and month', 'example, not an offer'),
}

# What the requests at the origin are, in parts of a hundred. Assumed.
MIX = {
    'standard renditions': 78, 'sizes, crops and marks of open renditions': 8, 'documents (.json, .xml)': 10,
    'unchanged (304)': 3, 'searches': 0.6, 'Hires': 0.2, 'purchases, streams, other APIs': 0.2,
}

# Writes a second in a busy minute. Assumed, but for those that follow from the items.
WRITES = {
    'first downloads and their orders': 60, 'logins, tokens, sessions': 30, 'deliveries (claim, renew, end)': 60,
    'collections, profiles, devices, channels': 20, 'streams: reads, gathered at each node': 100,
}


def m(name):
    return MEASURED[name][0]


def a(name):
    return ASSUMED[name][0]


def nice(value, digits=2):
    """A number as people write it: `digits` that count, thousands apart."""
    if value == 0:
        return '0'
    places = digits - 1 - math.floor(math.log10(abs(value)))
    value = round(value, places)
    return f'{value:,.{max(places, 0)}f}'


def size(count):
    for unit, factor in (('PB', 1e15), ('TB', 1e12), ('GB', 1e9), ('MB', 1e6), ('kB', 1e3)):
        if count >= factor:
            return f'{nice(count / factor)} {unit}'
    return f'{nice(count, 3)} bytes'


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '| ' + ' | '.join('---' for _ in head) + ' |']
    return '\n'.join(lines + ['| ' + ' | '.join(row) + ' |' for row in rows])


def plain(value):
    return f'{value:,.0f}' if value >= 1000 else f'{value:g}'


def figures_measured():
    rows = []
    for name, (value, unit, file, _) in MEASURED.items():
        number = f'{value * 100:g} %' if 'part of' in name else f'{plain(value)} {unit}'.strip()
        rows.append([name, number, f'`{file}`'])
    return table(['Measured', 'Figure', 'Where'], rows)


def figures_assumed():
    rows = [[name, f'{plain(value)} {unit}'.strip(), why] for name, (value, unit, why) in ASSUMED.items()]
    rows += [[f'of 100 requests at the origin: {name}', f'{part:g}', ''] for name, part in MIX.items()]
    rows += [[f'writes a second in a busy minute: {name}', f'{count}', ''] for name, count in WRITES.items()]
    return table(['Assumed', 'Figure', 'Why'], rows)


def rate(name):
    return a('requests at the origin') * MIX[name] / 100


def readings():
    origin, miss = a('requests at the origin'), 1 - a('hits of the CDN')
    row = lambda name, at_origin: [name, nice(at_origin / miss, 3), nice(at_origin, 3), nice(at_origin * 86_400 * 30 / 1e9, 3)]
    return table(['Reading', 'at the CDN, /s', 'at the origin, /s', 'thousand million a month at the origin'],
                 [row('**50,000 reach the origin** (this page)', origin),
                  row('50,000 reach the CDN', origin * miss)])


def pictures():
    return a('items') * a('part of the items with a picture')


def counted():
    """Bytes and milliseconds of a core of each standard rendition of a picture, sent from the standard set."""
    preview, thumbnail = m('a Preview'), (m('a Thumbnail'), m('CPU of a kept Thumbnail'))
    found = [(preview, m('CPU of a kept Preview')), (preview * m('a WebPreview, part of a Preview'), a('CPU of a kept WebPreview')),
             thumbnail, thumbnail]
    assert len(found) == a('standard renditions of a picture')
    return found


def listed():
    """The same of those that documents list besides the Hires, `r01` to `r04`: a WatermarkPreview is not in the set."""
    preview, web, thumbnail, _ = counted()
    return [preview, (m('a Preview'), a('CPU of a WatermarkPreview')), thumbnail, web]


def objects(of=counted):
    return pictures() * len(of())


def object_bytes(of=counted):
    return sum(weight for weight, _ in of()) / len(of())


def set_ms(of=counted):
    return sum(ms for _, ms in of()) / len(of())


def caching(exponent, nodes=None, of=counted):
    """Objects of the CDN, and the nodes' hits with items at their place and in turn."""
    found = popularity.bins(objects(of), exponent)
    held, kept = popularity.first(found, a('hits of the CDN'))
    room, nodes = a('disk for renditions of a node') / object_bytes(of), nodes or round(a('media nodes'))
    return held, [popularity.behind(found, kept, room, nodes, shared) for shared in (True, False)]


def from_sets(hit):
    """Standard renditions a second that no cache has, with their requests to the bucket and bytes."""
    missed = rate('standard renditions') * (1 - hit)
    return missed, missed * m('requests for a rendition from the standard set'), missed * m('bytes of them')


def gigabits(count):
    return nice(count * 8 / 1e9)


def caches():
    rows = []
    for exponent in (1.0, 1.1, 1.2):
        held, hits = caching(exponent)
        read = [from_sets(hit) for hit in hits]
        rows.append([f'{exponent:g}', size(held * object_bytes()), *(f'{100 * hit:.0f} %' for hit in hits),
                     *(f'{nice(requests)}; {gigabits(count)}' for _, requests, count in read)])
    return table(['Exponent', 'the CDN must keep', "hits of the nodes, items at their place", 'in turn',
                  'requests/s to the bucket; Gbit/s, items at their place', 'in turn'], rows)


def renditions():
    """What other standard renditions come to."""
    rows, nodes = [], round(a('media nodes'))
    for name, of in (('the standard renditions (this page)', counted), ('`r01` to `r04` of documents', listed)):
        held, hits = caching(a('exponent of popularity'), None, of)
        cores = from_sets(hits[0])[0] * set_ms(of) / 1000
        rows.append([name, nice(objects(of)), size(held * object_bytes(of)), f'{100 * hits[0]:.0f} %', nice(cores),
                     loads(None, (nodes, nodes + 4, nodes + 8), 1.0, of)])
    return table(['Counted for each picture', 'renditions', 'the CDN must keep', f'hits of {nodes} nodes', 'cores without a hit',
                  f'load of {nodes} nodes, of {nodes + 4}, of {nodes + 8}'], rows)


def media_cores(exponent=None, nodes=None, of=counted):
    """Cores by kind of request."""
    hit = caching(exponent or a('exponent of popularity'), nodes, of)[1][0]
    pictures_asked = rate('standard renditions')
    return {
        f'standard renditions from a cache ({100 * hit:.0f} %)': (
            pictures_asked * hit, m('CPU of a cached hit of 98 kB') / 1000),
        'standard renditions from the standard set': (pictures_asked * (1 - hit), set_ms(of)),
        'sizes, crops and marks of open renditions, all rendered': (
            rate('sizes, crops and marks of open renditions'), m('CPU of a size of 800 px, from the base')),
        'documents': (rate('documents (.json, .xml)'), 1000 / m('documents a second of one core')),
        'unchanged (304), as a hit': (rate('unchanged (304)'), m('CPU of a cached hit of 98 kB') / 1000),
        'Hires, as if all had a mark': (rate('Hires'), m('CPU of a Hires of 12.4 MB with a mark')),
    }


def media_needed(exponent=None, nodes=None, of=counted):
    return sum(count * ms / 1000 for count, ms in media_cores(exponent, nodes, of).values())


def loads(exponent, counts, part=1.0, of=counted):
    """Parts of a hundred that so many nodes are busy."""
    return ', '.join(f'{100 * part * media_needed(exponent, count, of) / (count * a("cores of a node")):.0f} %' for count in counts)


def media_nodes():
    rows = [[name, nice(count), nice(ms), nice(count * ms / 1000)] for name, (count, ms) in media_cores().items()]
    cores, nodes = media_needed(), round(a('media nodes'))
    rows.append(['**sum**', '', '', f'**{nice(cores)}**'])
    rows.append([f'load of {nodes} nodes, of {nodes - 2}', '', '', loads(None, (nodes, nodes - 2))])
    rows.append(['the same at the exponent 1', '', '', loads(1.0, (nodes, nodes - 2))])
    rows.append(['the other reading (a twentieth), load of 3 nodes, of 2', '', '', loads(None, (3, 2), 1 - a('hits of the CDN'))])
    return table(['Media', '/s', 'ms of a core each', 'cores'], rows)


def item_bytes():
    """Disk of an item in the index of a node that searches."""
    return m('the index on disk, 5 M items') / 5


def span(ms):
    for unit, factor in (('hours', 3_600_000), ('minutes', 60_000), ('s', 1000)):
        if ms >= factor:
            return f'{nice(ms / factor)} {unit}'
    return f'{nice(ms)} ms'


def search_cpu(count):
    """Seconds of a core for a search; beyond what was measured it grows with the number of items."""
    million = 1 if count <= 1e6 else 5
    return 2 / m(f'searches a second of 2 cores over HTTP, {million} M items') * max(count / (million * 1e6), 1)


def build_rate(million=5):
    return million * 1e6 / m(f'a build of the index, {million} M items')


def search():
    rows = []
    for name, count in (('1 million (measured)', 1e6), ('5 million (measured)', 5e6), ('10 million', 1e7), ('100 million', 1e8), ('1,000 million', 1e9)):
        million = 1 if count <= 1e6 else 5
        millis = [m(f'search over HTTP for the first time, {part}, {million} M items') * count / (million * 1e6) for part in ('p50', 'p95')]
        rows.append([name, size(item_bytes() * count), span(1000 * count / build_rate(million)), span(millis[0]), span(millis[1]),
                     nice(rate('searches') * search_cpu(count))])
    return table(['Items', 'disk at each node that searches', 'a build', 'search p50', 'p95', f'cores for {nice(rate("searches"))} searches/s'], rows)


def shards():
    per = a('items in a shard')
    count = math.ceil(a('items') / per)
    cpu = search_cpu(per)
    rows = []
    for part in (1.0, 0.3, 0.1, 0.03):
        cores = rate('searches') * cpu * (1 + part * (count - 1))
        rows.append([f'{100 * part:g} %', nice(cores), nice(math.ceil(cores / a('load to aim at') / a('cores of a node')))])
    return table([f'Searches that must look beyond the newest of {count} shards', 'cores', 'nodes'], rows)


def arrivals():
    mean = a('items') / (a('years of the archive') * 365.25 * 86_400)
    now = mean * a('items a day now, to the mean of those years')
    return mean, now, now * a('busiest second to the mean')


def queue_rows():
    return m('batches of 362 queue rows') * m('met by an item, news')


def matcher():
    rows = []
    for name, items in zip(('mean of 20 years', 'now', 'busiest seconds'), arrivals()):
        news, common = (items * m(f'met by an item, {kind}') for kind in ('news', 'common words'))
        rows.append([name, nice(items), f'{nice(items * m("matching with 100,000 queries, p95") / 10)} %',
                     f'{nice(items * m("the same with common words, p95") / 10)} %', nice(news), nice(common)])
    most = queue_rows() / 2
    rows.append(['most that the database takes', f'{nice(most / m("met by an item, news"))} (news), '
                 f'{nice(most / m("met by an item, common words"))} (common words)', '', '', nice(most), nice(most)])
    rows.append(['most that one matcher takes', f'{nice(1000 / m("matching with 100,000 queries, p95"))} (news), '
                 f'{nice(1000 / m("the same with common words, p95"))} (common words)', '100 %', '100 %', '–', '–'])
    return table(['Items coming in', '/s', 'of a core, news', 'of a core, common words', 'queue rows/s, news', 'queue rows/s, common words'], rows)


def database():
    items, kept = a('items'), arrivals()[1] * 86_400 * m('days that item_log is kept') * a('versions of an item')
    row = lambda name, count, each: (name, count, each, count * each)
    orders = WRITES['first downloads and their orders'] / 4 * 86_400 * 365.25 * 10
    found = [
        row('`items` (documents)', items, m('a row of items with its indexes')),
        row('`item_log`, 7 days', kept, m('a row of item_log')),
        row('`orders`, 10 years at a quarter of the busy rate', orders, m('a row of orders')),
        row('`queued_items`, 10,000 for each notification at most', 1e4 * a('notifications'), m('a row of queued_items')),
    ]
    rows = [[name, nice(count), nice(each, 4), size(total)] for name, count, each, total in found]
    rows.append(['**sum**', '', '', f'**{size(sum(one[3] for one in found))}**'])
    return table(['Table', 'rows', 'bytes a row', 'size'], rows)


def hold(statements, trip, flush, replica):
    """Milliseconds that a purchase holds the lock."""
    return m('fastest purchase, flush and all') + statements * trip + flush + replica


def writer():
    """How many writers of one transaction each get through one lock in a second."""
    trips, trip = a('statements of a purchase, with begin, lock and commit'), a('round trip to the database')
    flush, replica = a('flush of a good disk'), a('a replica that must have it')
    cases = [
        ('measured: same machine, shared virtual disk', None),
        ('database on the same machine, good disk', hold(0, 0, flush, 0)),
        ('over the network', hold(trips - 1, trip, flush, 0)),
        ('over the network, a replica must have it', hold(trips - 1, trip, flush, replica)),
    ]
    rows = []
    for name, millis in cases:
        most = m('purchases a second under the lock') if millis is None else 1000 / millis
        rows.append([name, '–' if millis is None else nice(millis), nice(most), f'{nice(100 * writes() / most)} %',
                     f'{nice(100 * (writes() / most + queueing()))} %'])
    return table(['One purchase a transaction, one lock', 'ms under the lock', 'most, /s', 'of that a busy minute needs',
                  'with the queue rows of the busiest seconds, news'], rows)


def queueing():
    """Part of the time that queue rows of the busiest seconds hold the lock."""
    return arrivals()[2] / m('batches of 362 queue rows')


def writes():
    return sum(WRITES.values()) + arrivals()[2]


def writes_table():
    rows = [[name, nice(count)] for name, count in WRITES.items()]
    rows.append(['items in the busiest seconds, one by one', nice(arrivals()[2])])
    rows.append(['**sum**', f'**{nice(writes())}**'])
    return table(['Transactions', '/s'], rows)


def numbers():
    """Years until the numbers of 32 bits are used up, with the archive taken in at once."""
    used = a('items') * a('versions of an item')
    a_year = arrivals()[1] * a('versions of an item') * 86_400 * 365.25
    return (2**32 - used) / a_year


def store():
    count, original = pictures(), a('an original')
    parts = [
        ('originals', original), ('side files', original * m('side file, part of the original')),
        ('standard renditions and base', m('standard renditions and base of a picture')),
        ('working copies', original * a('originals that need a working copy')),
    ]
    rows = [[name, nice(each, 3), size(each * count), nice(each * count / 1e9 * a('price of keeping'))] for name, each in parts]
    total = sum(each for _, each in parts)
    rows.append(['**sum**', nice(total, 3), f'**{size(total * count)}**', f'**{nice(total * count / 1e9 * a("price of keeping"))}**'])
    return table(['In the bucket', 'bytes a picture', f'of {nice(count)} pictures', '€ a month at the example price'], rows)


def bucket_reads():
    """What is read from the bucket: times a second, requests and bytes each."""
    a_set = m('requests for a rendition from the standard set'), m('bytes of them')
    return [('standard renditions that no cache has', media_cores()['standard renditions from the standard set'][0], *a_set),
            ('sizes, crops and marks of open renditions', rate('sizes, crops and marks of open renditions'), *a_set),
            ('Hires, in pieces of 512 KiB', rate('Hires'), a('an original') / 524_288, a('an original'))]


def bucket_requests():
    return sum(count * each for _, count, each, _ in bucket_reads())


def in_flight():
    """Reads for renditions from the standard set in flight at a node."""
    kept, sized, _ = bucket_reads()
    reads = m('requests for a rendition from the standard set') * a('time to the first byte of the bucket')
    return (kept[1] + sized[1]) * reads / a('media nodes')


def bucket():
    rows = [[name, nice(count), nice(each), nice(count * each), f'{gigabits(count * of)} Gbit/s'] for name, count, each, of in bucket_reads()]
    asked, carried = bucket_requests(), sum(count * of for _, count, _, of in bucket_reads())
    rows.append(['**sum**', '', '', f'**{nice(asked)}**', f'**{gigabits(carried)} Gbit/s**'])
    nodes = round(a('media nodes'))
    rows.append([f'a node of {nodes}', '', '', nice(asked / nodes), f'{gigabits(carried / nodes)} Gbit/s'])
    rows.append([f'requests in flight at a node of {nodes}', '', '', f'{nice(asked / nodes * a("time to the first byte of the bucket"))}; '
                 f'`store.requests` is {m("requests to the bucket at a time, by default")}', ''])
    rows.append([f'reads for renditions from the standard set in flight at a node of {nodes}', '', '', f'{nice(in_flight())} of '
                 f'{m("reads of the store at a time")} at most', ''])
    return table(['Read from the bucket', 'renditions/s', 'requests each', 'requests/s', 'bytes'], rows)


def sent():
    return [('standard renditions', rate('standard renditions') * object_bytes()),
            ('sizes, crops and marks (as large as a Preview)', rate('sizes, crops and marks of open renditions') * m('a Preview')),
            ('documents (5 kB), searches (59 kB)', rate('documents (.json, .xml)') * 5e3 + rate('searches') * 59e3),
            ('Hires', rate('Hires') * a('an original'))]


def network():
    rows = [[name, f'{gigabits(count)} Gbit/s'] for name, count in sent()]
    rows.append(['**sum**', f'**{gigabits(sum(count for _, count in sent()))} Gbit/s**'])
    return table(['From the origin to the CDN', ''], rows)


def node_traffic():
    """Bytes a second of a media node, from the bucket and to the CDN."""
    return (sum(count for _, count in sent()) + sum(count * of for _, count, _, of in bucket_reads())) / a('media nodes')


def cost():
    core = a('price of a core') / 3600
    from_set = m('requests for a rendition from the standard set')
    cases = [('Preview, from the standard set', m('CPU of a kept Preview'), from_set),
             ('Thumbnail, from the standard set', m('CPU of a kept Thumbnail'), from_set),
             ('800 px, from the base of the set', m('CPU of a size of 800 px, from the base'), from_set),
             ('WebP of a Preview (by method 4), from the base', m('CPU of a WebP Preview by method 4, from the base'), from_set),
             ('crop 800x600 of a Hires', m('CPU of a crop 800x600 of a Hires of 24 MP'), m('requests to the bucket for a crop of a Hires')),
             ('Hires with a mark', m('CPU of a Hires of 12.4 MB with a mark'), a('an original') / 524_288),
             ('any of them from a cache', m('CPU of a cached hit of 98 kB') / 1000, 0)]
    rows = []
    for name, ms, requests in cases:
        seconds = ms * 1000
        compute, asked = seconds / a('load to aim at') * core, requests * a('price of requests to the bucket')
        rows.append([name, nice(seconds), nice(requests) if requests else '0', nice(compute), nice(asked) if asked else '0', nice(compute + asked)])
    return table(['A million of', 'core-seconds', 'million requests to the bucket', '€ for cores', '€ for requests', '€ together'], rows)


def ingest():
    """Photographs a second in the busiest seconds, the cores for them, and those for decoding them once more."""
    photographs = arrivals()[2] * a('part of the items with a picture')
    return photographs, photographs * m('ingest of a photograph of 24 MP, by an earlier version') / 1000, photographs * 2 * decoding()


def decoding():
    """Seconds on two cores."""
    return m('decoding 24 MP on two cores') / 1000


def kinds():
    nodes = round(a('media nodes'))
    polls = a('notifications') / m('polls of a process, by default')
    per = a('items in a shard')
    photographs, cores, decoded = ingest()
    rows = [
        ['edge: balancers', '2 and 1 to spare', 'HAProxy or nginx; by the key of docs/operations/load-balancing.md', 'assumed: 25,000/s each'],
        ['media: renditions, documents, Hires', f'{nodes}', f'{a("cores of a node"):.0f} cores, {size(a("disk for renditions of a node"))} of cache', 'table Media'],
        ['web: APIs, pages, streams', f'{math.ceil(polls) + 1}', f'{nice(polls)} processes of {m("polls of a process, by default"):,} polls; '
         f'{size(m("memory of a waiting poll") * a("notifications"))} for all of them', 'computed'],
        ['search', 'table Shards', f'{size(item_bytes() * per)} of index on disk a shard of {nice(per / 1e6)} million', 'needs what is not built'],
        ['worker: ingest, matching, deliveries, mails', '2', f'one at work, one to take over; {size(m("memory of a saved query of 100,000") * a("notifications"))} for the notifications; '
         f'{nice(cores)} cores for {nice(photographs)} photographs/s in the busiest seconds, and {nice(decoded)} to decode them once more', 'table Matching'],
        ['database', '1 and 2 replicas', 'table Database', 'tables Database, Writer'],
    ]
    return table(['Kind', 'nodes', 'what each has', 'from'], rows)


def files():
    """Files of the cache at a node, the minutes that a start lists them, the memory of their index."""
    count = a('disk for renditions of a node') / object_bytes()
    return count, count * a('listing a file of that cache at the start') / 60e6, count * a('memory of such a file in the index')


def limits():
    """What is reached first, as a part of the goal."""
    asked = a('media nodes') * m('requests to the bucket at a time, by default') / a('time to the first byte of the bucket')
    millis = hold(a('statements of a purchase, with begin, lock and commit') - 1, a('round trip to the database'),
                  a('flush of a good disk'), a('a replica that must have it'))
    locked = writes() * millis / 1000 + queueing()
    ram = a('memory of a node') * 0.8 / item_bytes()
    slow = 1000 / m('search over HTTP for the first time, p95, 5 M items') * 5e6
    built = 3600 * build_rate()
    common = queue_rows() / 2 / m('met by an item, common words')
    found = [
        ('a search takes more than a second (p95)', f'{nice(slow / 1e6)} million items', slow / a('items')),
        ('building the index takes more than an hour', f'{nice(built / 1e6)} million items', built / a('items')),
        ('listing the cache at a start takes more than a minute', f'{size(a("disk for renditions of a node") / files()[1])} of renditions', 1 / files()[1]),
        ('reads from the bucket wait for `store.requests`, as by default', f'{nice(asked)} requests/s of {round(a("media nodes"))} nodes', asked / bucket_requests()),
        ('renditions from the standard set wait for each other to be read', f'{m("reads of the store at a time")} at a time at a node', m('reads of the store at a time') / in_flight()),
        ('queue rows, where notifications ask for common words', f'{nice(common)} items/s', common / arrivals()[2]),
        ('the index does not fit into four fifths of the memory of a node', f'{nice(ram / 1e6)} million items', ram / a('items')),
        ('the one writer: network, replica, queue rows', f'{nice(writes() / locked)} transactions/s and their queue rows', 1 / locked),
        ('numbers of 32 bits are used up', f'{nice(2**32 / 1e9)} thousand million versions', 2**32 / (a('items') * a('versions of an item'))),
        ('the cores of the media nodes', f'{nice(a("media nodes") * a("cores of a node"))} cores', a('media nodes') * a('cores of a node') / media_needed()),
        ('one matcher, common words', f'{nice(1000 / m("the same with common words, p95"))} items/s', 1000 / m('the same with common words, p95') / arrivals()[2]),
    ]
    found.sort(key=lambda one: one[2])
    return table(['', 'Bottleneck', 'at', 'of the goal'], [
        [str(at), name, where, f'{nice(100 * part)} %' if part < 1 else f'{nice(part)} times'] for at, (name, where, part) in enumerate(found, 1)])


TABLES = {
    'kinds': kinds, 'caches': caches, 'renditions': renditions, 'media': media_nodes, 'search': search, 'shards': shards,
    'matcher': matcher, 'database': database, 'writer': writer, 'store': store, 'bucket': bucket,
    'network': network, 'cost': cost, 'limits': limits,
}
# Printed, but not on the page.
LISTS = {'readings': readings, 'writes': writes_table, 'measured': figures_measured, 'assumed': figures_assumed}


def said():
    """What the page says between its tables."""
    mean, now, busy = arrivals()
    return [
        f'{a("media nodes")} nodes, {loads(None, (a("media nodes"),))} busy', f'{nice(5e3 / m("search over HTTP for the first time, p95, 5 M items"))} million items',
        f'{nice(files()[0] / 1e6)} million files', f'{nice(files()[1])} minutes', f'{size(files()[2])} of memory',
        f'{nice(item_bytes(), 3)} bytes an item', f'{nice(m("memory of a process that is not mapped files, 5 M items"), 3)} MB',
        f'{nice(mean)} items a second', f'{nice(now)} now and {nice(busy)} in the busiest seconds',
        f'{nice(pictures())} pictures', f'{nice(objects())} standard renditions', f'{nice(numbers())} years',
        f'{nice(queue_rows())} rows a second', f'{nice(pictures() * decoding() / 86_400 / 365.25)} years of decoding',
        f'carries {nice(node_traffic() * 8 / 1e9, 1)} Gbit/s', f'A busy minute needs {nice(writes())} transactions a second',
    ]


def flaws(page):
    found = []
    for name, (_, _, file, words) in MEASURED.items():
        with open(os.path.join(ROOT, file), encoding='utf-8') as text:
            if words not in text.read():
                found.append(f'{name}: {file} does not say {words!r}')
    if written(page) != page:
        found.append(f'{PAGE}: a table is not what model.py makes; python3 benches/scale/model.py --write')
    flat = ' '.join(page.split())
    found += [f'{PAGE} does not say {words!r}' for words in said() if words not in flat]
    found += [f'{PAGE} lacks the table {name}' for name in TABLES if f'<!-- {name} -->' not in page]
    return found


def written(page):
    for name, make in TABLES.items():
        page = re.sub(f'(<!-- {name} -->\n).*?(<!-- end -->)', lambda place: place[1] + make() + '\n' + place[2], page, flags=re.S)
    return page


def main():
    path = os.path.join(ROOT, PAGE)
    if len(sys.argv) == 1:
        for name, make in (TABLES | LISTS).items():
            print(f'## {name}\n\n{make()}\n')
        print('\n'.join(said()))
        return
    with open(path, encoding='utf-8') as text:
        page = text.read()
    if sys.argv[1] == '--write':
        page = written(page)
        with open(path, 'w', encoding='utf-8') as text:
            text.write(page)
    found = flaws(page)
    print('\n'.join(found) or 'the page says what the model says')
    sys.exit(bool(found))


if __name__ == '__main__':
    main()
