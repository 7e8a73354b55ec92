#!/usr/bin/env python3
"""Prints the tables of a run of peers.sh as Markdown. usage: table.py [--details] RESULTS

Without --details it prints the tables of README.md: medians of the rounds, the ratio to the best peer first.
"""
import json, statistics, sys

lines = [json.loads(line) for line in open(sys.argv[-1])]
HITS = {"": "HTTP/1.1", ", TLS": "TLS", ", HTTP/2": "HTTP/2"}


def of(part, **fields):
    return [line for line in lines if line["part"] == part and all(line[name] == value for name, value in fields.items())]


def listed(turns, field):
    """The values of a field, each once, in their order."""
    return list(dict.fromkeys(turn[field] for turn in turns))


def median(turns, field):
    values = [turn[field] for turn in turns if turn[field] is not None]
    return statistics.median(values) if values else 0.0


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.1f}"


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def head(*cells):
    row(*cells)
    row(*["---"] * len(cells))


def cell(turns, field="rate"):
    """The median of the turns, – without turns; a turn with errors has no rate."""
    errors = sum(turn["errors"] for turn in turns)
    return "–" if not turns else f"{errors} errors" if errors else number(median(turns, field))


def has_rate(turns):
    return bool(turns) and not any(turn["errors"] for turn in turns)


def ratio(ours, peers):
    """Ours over the best of the peers, which have no turns if they lack the operation."""
    best = max((median(turns, "rate") for turns in peers if has_rate(turns)), default=0)
    if not best or not has_rate(ours):
        return "–"
    value = median(ours, "rate") / best
    return f"**{value:.2f}**" if value < 10 else f"**{number(value)}**"


def renders():
    run, = of("renders")
    names = {"ours": "Wirephoto"} | {name: f"{name} {text}" for name, text in run["versions"].items()}
    for photo in of("photo"):
        print(f"\nRequests a second with {run['connections']} connections, result caches off; copies of a photograph of "
              f"{photo['description']}, none requested twice at a time. Previews and Thumbnails of Wirephoto are stored "
              "at ingest.\n")
        turns = of("render", photo=photo["photo"])
        shown = [name for name in ["ours", *run["versions"]] if name in listed(turns, "server")]
        head("", "Wirephoto / best peer", *(names[name] for name in shown))
        for title in listed(turns, "title"):
            by = {name: [turn for turn in turns if (turn["title"], turn["server"]) == (title, name)] for name in shown}
            row(title, ratio(by["ours"], [by[name] for name in shown[1:]]), *(cell(by[name]) for name in shown))


def hits():
    run, = of("hits")
    print("\nCached hits a second with 64 connections of keep-alive, beside the same bytes as files of nginx "
          f"{run['versions']['nginx']} and as hits of caches in front of Wirephoto. Wirephoto writes no line of log for a hit, "
          "except in the column *info*, its default.\n")
    others = [name for name in ("nginx proxy_cache", "Varnish") if of("hit", server=name)]
    titles = [f"{name} {run['versions'][name]}" if name in run["versions"] else name for name in others]
    head("", "Wirephoto / nginx", "Wirephoto", "Wirephoto, info", "nginx, files", *titles,
         "CPU a request, µs: Wirephoto / nginx", "p99, ms: Wirephoto / nginx")
    for suffix, protocol in HITS.items():
        for name in listed(of("hit", server=f"ours{suffix}"), "row"):
            turns = lambda server: of("hit", row=name, server=server)
            ours, nginx = turns(f"ours{suffix}"), turns(f"nginx{suffix}")
            rest = ["ours at info", None, *others] if not suffix else [""] * (2 + len(others))
            cells = [cell(nginx) if other is None else cell(turns(other)) for other in rest]
            if suffix:
                cells[1] = cell(nginx)
            size = ours[0]["bytes"]
            title = f"{name}, {size / 1e3:.1f} kB" if size else name
            row(f"{title}, {protocol}", ratio(ours, [nginx]), cell(ours), *cells,
                f"{cell(ours, 'cpu_us')} / {cell(nginx, 'cpu_us')}", f"{cell(ours, 'p99_ms')} / {cell(nginx, 'p99_ms')}")
    print("\nWith both tiers of the cache off, a stored rendition costs this multiple of a hit's processor time: " + ", ".join(
        f"{name} {median(of('hit', row=name, server='ours, no cache'), 'cpu_us') / median(of('hit', row=name, server='ours'), 'cpu_us'):.1f}"
        for name in listed(of("hit", server="ours, no cache"), "row")) + ".")


def details():
    if of("render"):
        head("operation", "server", "requests/s (rounds)", "p50, ms", "p99, ms", "requests", "errors",
             "CPU a request, ms", "peak resident, MB", "PSNR, dB", "response")
    for operation in listed(of("render"), "operation"):
        for server in listed(of("render", operation=operation), "server"):
            turns = of("render", operation=operation, server=server)
            row(operation, server, *measured(turns), number(median(turns, "cpu_ms")),
                f"{max(turn['peak_mb'] for turn in turns):.0f}", f"{turns[0]['psnr']:.2f}", turns[0]["response"])
    print()
    if of("hit"):
        head("row", "server", "requests/s (rounds)", "p50, ms", "p99, ms", "requests", "errors", "CPU a request, µs",
             "of nginx")
    for name in listed(of("hit"), "row"):
        for server in listed(of("hit", row=name), "server"):
            turns = of("hit", row=name, server=server)
            suffix = next(suffix for suffix in reversed(HITS) if server.endswith(suffix))
            share = median(turns, "rate") / median(of("hit", row=name, server=f"nginx{suffix}"), "rate")
            row(name, server, *measured(turns), f"{median(turns, 'cpu_us'):.1f}", f"{share:.2f}")


def measured(turns):
    rates = ", ".join(number(turn["rate"]) for turn in turns)
    return (f"{number(median(turns, 'rate'))} ({rates})", f"{median(turns, 'p50_ms'):.2f}", f"{median(turns, 'p99_ms'):.2f}",
            str(sum(turn["requests"] for turn in turns)), str(sum(turn["errors"] for turn in turns)))


def main():
    if "--details" in sys.argv:
        details()
        return
    machine, = of("machine")
    print(f"{machine['text']}. The load generator runs on the same cores. Every cell is the median of rounds in turns.")
    for part, show in (("renders", renders), ("hits", hits)):
        if of(part):
            show()


main()
