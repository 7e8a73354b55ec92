#!/usr/bin/env python3
"""Lists the program's dependencies, from Cargo.lock and the sources of the crates.

packaging/dependencies.py            updates docs/internals/dependencies.md: keeps the purpose of each crate,
                                     takes the rest from Cargo and its registry
packaging/dependencies.py --notices FILE
                                     writes the licence texts of all crates in the program, which must
                                     accompany a binary
packaging/dependencies.py --sbom FILE
                                     writes the crates with licences and checksums, in CycloneDX 1.5

Dates come from the registry's index in Cargo's home; `cargo update --dry-run` updates it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/internals/dependencies.md"
TARGET = "x86_64-unknown-linux-gnu"
HEAD = "| Crate | What for | Licence | Version | of | Newest | of |\n| --- | --- | --- | --- | --- | --- | --- |"


def metadata():
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", TARGET]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def releases(name):
    """The releases of a crate in Cargo's copy of the registry's index: version -> entry."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    name = name.lower()
    folder = {1: "1", 2: "2", 3: f"3/{name[0]}"}.get(len(name), f"{name[:2]}/{name[2:4]}")
    entries = {}
    for file in home.glob(f"registry/index/*/.cache/{folder}/{name}"):
        for part in file.read_bytes().split(b"\0"):
            if part.startswith(b"{"):
                entry = json.loads(part)
                entries[entry["vers"]] = entry
    return entries


def newest(entries):
    def key(entry):
        return [int(number) for number in entry["vers"].split("+")[0].split(".")]

    stable = [e for e in entries.values() if "-" not in e["vers"].split("+")[0] and not e["yanked"]]
    return max(stable, key=key, default=None)


def day(entry):
    return (entry or {}).get("pubtime", "")[:10] or "–"


def direct(data):
    """Direct dependencies of the workspace: name -> (package, whether it is in the program)."""
    command = ["cargo", "tree", "--locked", "--package=wirephoto", "--target", TARGET,
               "--edges=normal", "--prefix=none", "--format={p}"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    within = {line.split()[0] for line in output.splitlines() if line}
    packages = {package["id"]: package for package in data["packages"]}
    found = {}
    for node in data["resolve"]["nodes"]:
        if node["id"] not in data["workspace_members"]:
            continue
        for dependency in node["deps"]:
            package = packages[dependency["pkg"]]
            if package["id"] not in data["workspace_members"]:
                found[package["name"]] = (package, package["name"] in within)
    return found


def reasons():
    if not TABLE.exists():
        return {}
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", TABLE.read_text(), re.M)
    return {name: reason.strip() for name, reason in rows}


def row(package, reason):
    entries = releases(package["name"])
    last = newest(entries)
    cells = [
        f"`{package['name']}`", reason, package["license"], package["version"],
        day(entries.get(package["version"])), last["vers"].split("+")[0] if last else "–", day(last),
    ]
    return "| " + " | ".join(cells) + " |"


def write_table():
    data, known = metadata(), reasons()
    dependencies = direct(data)
    text = TABLE.read_text()
    for mark, within in (("product", True), ("tests", False)):
        rows = [
            row(package, known.get(name, "")) for name, (package, of_program)
            in sorted(dependencies.items()) if of_program == within
        ]
        table = f"<!-- {mark} -->\n{HEAD}\n" + "\n".join(rows) + "\n<!-- end -->"
        text = re.sub(rf"<!-- {mark} -->.*?<!-- end -->", lambda _: table, text, flags=re.S)
    TABLE.write_text(text)
    for name in dependencies:
        if not known.get(name):
            print(f"docs/internals/dependencies.md: say what `{name}` is for", file=sys.stderr)


def inside():
    """The packages whose code is in the program: not those of tests, builds and macros."""
    command = ["cargo", "tree", "--locked", "--package=wirephoto", "--target", TARGET,
               "--edges=normal,no-proc-macro", "--prefix=none", "--format={p}"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    listed = {tuple(line.split()[:2]) for line in output.splitlines() if line}
    packages = [p for p in metadata()["packages"] if (p["name"], "v" + p["version"]) in listed]
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def foreign():
    return [package for package in inside() if package["source"]]


def texts(package):
    """The licence texts in a crate, including those of bundled C libraries."""
    folder = Path(package["manifest_path"]).parent
    named = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.I)
    files = [file for file in folder.rglob("*") if file.is_file() and named.match(file.name)]
    kept = (file for file in sorted(files) if file.suffix.lower() in {"", ".md", ".txt", ".html"}
            or named.match(file.suffix[1:]) or file.suffix[1:].isupper())
    return [(file.relative_to(folder), file.read_text(errors="replace").strip()) for file in kept]


def write_notices(out):
    packages, same = foreign(), {}
    lines = ["The program contains these works, each under its own licence.", ""]
    for package in packages:
        lines.append(f"{package['name']} {package['version']}: {package['license']}")
        found = texts(package)
        for name, text in found:
            number = same.setdefault(text, len(same) + 1)
            lines.append(f"    {name}: text {number}")
        if not found:
            lines.append(f"    authors: {', '.join(package['authors']) or package['repository']}")
    for text, number in same.items():
        lines += ["", "=" * 78, f"Text {number}", "", text]
    Path(out).write_text("\n".join(lines) + "\n")
    print(f"{out}: {len(packages)} crates, {len(same)} texts")


def checksums():
    """(name, version) -> SHA-256 of the crate's file."""
    lock = (ROOT / "Cargo.lock").read_text()
    pattern = r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]+)"'
    return {(name, version): sum for name, version, sum in re.findall(pattern, lock)}


def write_sbom(out):
    packages, sums = inside(), checksums()
    known = {(package["name"], package["version"]): package for package in packages}

    def reference(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(package):
        entry = {
            "type": "library",
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": package["license"].replace(" / ", " OR ").replace("/", " OR ")}],
            "purl": reference(package),
        }
        if checksum := sums.get((package["name"], package["version"])):
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        return entry

    data = metadata()
    by_id = {package["id"]: package for package in data["packages"]}
    edges = []
    for node in data["resolve"]["nodes"]:
        package = by_id[node["id"]]
        if (package["name"], package["version"]) in known:
            below = {
                reference(by_id[dependency["pkg"]]) for dependency in node["deps"]
                if any(kind["kind"] is None for kind in dependency["dep_kinds"])
                and (by_id[dependency["pkg"]]["name"], by_id[dependency["pkg"]]["version"]) in known
            }
            edges.append({"ref": reference(package), "dependsOn": sorted(below)})
    program = next(package for package in packages if package["name"] == "wirephoto")
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(program) | {"type": "application"}},
        "components": [component(package) for package in packages if package is not program],
        "dependencies": sorted(edges, key=lambda edge: edge["ref"]),
    }
    Path(out).write_text(json.dumps(bom, indent=1) + "\n")
    print(f"{out}: {len(packages)} components")


if sys.argv[1:2] == ["--sbom"] and len(sys.argv) == 3:
    write_sbom(sys.argv[2])
elif sys.argv[1:2] == ["--notices"] and len(sys.argv) == 3:
    write_notices(sys.argv[2])
elif len(sys.argv) == 1:
    write_table()
else:
    sys.exit(__doc__)
