#!/usr/bin/env bash
# Starts the service as the image does, without a container engine: with the variables, the user and the port of
# the Dockerfile, on a root that is read-only except for the volume and /tmp, without capabilities, in its own
# network namespace. The first argument is the binary. Needs root and namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."
binary="$(realpath "$1")"

if [ "${2:-}" != inside ]; then
    if ! unshare --mount --net --pid --fork --mount-proc true 2>/dev/null; then
        echo "container: skipped, it needs root and namespaces"
        exit 0
    fi
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    unshare --mount --net --pid --fork --mount-proc --kill-child "$0" "$binary" inside "$work"
    exit
fi

work="$3"
root="$work/root"
fail() { printf 'container: %s\n' "$*" >&2; cat "$work/log" >&2 2>/dev/null || true; exit 1; }
ip link set lo up

# A separate root with the host's /usr and /etc/ssl, read-only.
mkdir -p "$root"/{usr,etc/ssl,dev,proc,tmp,opt/bin,var/lib/wirephoto}
mount --bind "$root" "$root"
mount --rbind -o ro /usr "$root/usr"
mount --bind -o ro /etc/ssl "$root/etc/ssl"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
for name in bin lib lib64; do
    [ ! -e "/$name" ] || ln -s "usr/$name" "$root/$name"
done
cp "$binary" "$root/opt/bin/wirephoto"
cp media-store/demo/bare/demo-aitzgorri-host.jpg "$root/opt/quay.jpg"
# A test binary reads these files, which a release embeds.
mkdir -p "$root$PWD/assets"
mount --bind -o ro assets "$root$PWD/assets"
mount -o remount,bind,ro "$root"
# --tmpfs /tmp and -v wirephoto:/var/lib/wirephoto; a new volume inherits owner and mode from the image.
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o uid=10001,gid=10001,mode=0700 tmpfs "$root/var/lib/wirephoto"

user="$(sed -n 's/^USER //p' Dockerfile)"
port="$(sed -n 's/^EXPOSE //p' Dockerfile)"
mapfile -t variables < <(grep -o 'WIREPHOTO_[A-Z_]*=[^ ]*' Dockerfile)
[ "${#variables[@]}" -gt 0 ] || fail "the Dockerfile has no settings"
# As in the image: no capabilities, and no way to gain any.
as=(/usr/sbin/chroot "$root" /usr/bin/setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups
    --no-new-privs --bounding-set=-all --inh-caps=-all
    /usr/bin/env -i PATH=/opt/bin:/usr/bin "${variables[@]}")
within() { "${as[@]}" "$@"; }
"${as[@]}" wirephoto serve >"$work/log" 2>&1 &
server=$!
for _ in $(seq 300); do
    within wirephoto health >/dev/null 2>&1 && break
    kill -0 "$server" 2>/dev/null || fail "it does not start"
    sleep 0.2
done
[ "$(within wirephoto health)" = ready ] || fail "it is not ready"
within wirephoto ingest /opt/quay.jpg >/dev/null
kind="$(curl --noproxy '*' -fsS -o "$work/picture" -w '%{content_type}' \
    "http://127.0.0.1:$port/media/image/quay_NormalPreview.jpg")"
[ "$kind" = image/jpeg ] || fail "a Preview is $kind"
# The user cannot write anywhere else.
for place in / /etc /opt /var/lib /usr/share; do
    ! within touch "$place/written" 2>/dev/null || fail "$place can be written"
done
# Stop as the engine does, with STOPSIGNAL.
kill -s "$(sed -n 's/^STOPSIGNAL SIG//p' Dockerfile)" "$server"
wait "$server" || fail "it ended with status $?"
echo "container: user $user serves over a read-only root and ends on SIGTERM"
