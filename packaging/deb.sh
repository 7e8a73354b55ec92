#!/usr/bin/env bash
# Builds the Debian package with cargo-deb: packaging/deb.sh [PROFILE] [FOLDER]
# PROFILE is dist (the default; smallest and fastest binary), release or dev. FOLDER receives the package;
# the default is target/debian. Generated contents are in target/packaging.
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-dist}"
out="${2:-target/debian}"
command -v cargo-deb >/dev/null || { echo "deb.sh: please cargo install --locked cargo-deb" >&2; exit 1; }

# NO_BUILD uses the existing binary.
[ -n "${NO_BUILD:-}" ] || cargo build --locked --profile "$profile" --bin wirephoto
target="${CARGO_TARGET_DIR:-target}"
folder="$profile"
[ "$profile" = dev ] && folder=debug
binary="$target/$folder/wirephoto"

made=target/packaging
rm -rf "$made"
mkdir -p "$made/completions" "$out"
"$binary" man --dir "$made/man"
"$binary" completions bash >"$made/completions/wirephoto"
"$binary" completions zsh >"$made/completions/_wirephoto"
"$binary" completions fish >"$made/completions/wirephoto.fish"
packaging/dependencies.py --sbom "$made/sbom.cdx.json"
packaging/dependencies.py --notices "$made/third-party.txt"

cargo deb --locked --no-build --no-dbgsym --profile "$profile" --output "$out"
