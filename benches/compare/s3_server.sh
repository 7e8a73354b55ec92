# Sourced: installs an S3 server (moto) beside the tree, once, and exports S3_PYTHON, the Python that runs it.
home="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/wirephoto/faults"
if ! cmp -s tests/clients/outbound.txt "$home/installed"; then
    python3 -m venv --clear "$home/venv"
    "$home/venv/bin/pip" install --quiet --disable-pip-version-check -r tests/clients/outbound.txt
    cp tests/clients/outbound.txt "$home/installed"
fi
export S3_PYTHON="$home/venv/bin/python"
