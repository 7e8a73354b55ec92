#!/usr/bin/env bash
# Runs the suite. Each test that fails runs once more at the end, alone. If it passes then, it is flaky and printed
# with the output of its failure; more than two flaky tests fail the run. Arguments are passed to the test runner:
# tests/suite.sh overload:: --skip damage::
# SUITE_FLAKY names a file that collects the flaky tests of several runs, which are counted together.
set -euo pipefail
cd "$(dirname "$0")/.."

flaky_max=2
# More failures than this have a common cause, which second runs would only repeat.
repeated_max=10

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
flaky_file="${SUITE_FLAKY:-$work/flaky}"
fail() { printf 'suite.sh: %s\n' "$*" >&2; exit 1; }

# The output of the failed test $1 in the first run.
output_of() {
    awk -v head="---- $1 stdout ----" '
        $0 == head { inside = 1; next }
        inside && /^(---- .* stdout ----|failures:)$/ { exit }
        inside' "$work/first"
}

# Build servers read the last line that begins with "test result", so rename the line of a failed first run.
status=0
cargo test --locked --test suite -- "$@" | sed -u 's/^test result: FAILED/first run: FAILED/' |
    tee "$work/first" || status=$?
[ "$status" -ne 0 ] || exit 0

# A crash ends the process without a result.
pattern='^first run: FAILED\. ([0-9]+) passed; ([0-9]+) failed; (.*)$'
[[ "$(grep '^first run: FAILED' "$work/first" | tail -n 1)" =~ $pattern ]] ||
    fail "the suite ended with status $status before its result"
passed="${BASH_REMATCH[1]}" count="${BASH_REMATCH[2]}" rest="${BASH_REMATCH[3]}"
mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$work/first")
[ "${#failed[@]}" -eq "$count" ] || fail "$count tests failed, but the output names ${#failed[@]}"

# Prints the result in the words of the test runner, then ends.
finish() {
    printf '\ntest result: %s. %d passed; %d failed; %d flaky; %s\n' "$1" "$passed" "$count" "${#flaky[@]}" "$rest"
    [ "$1" = ok ] || exit 1
    exit 0
}

flaky=()
if [ "$count" -gt "$repeated_max" ]; then
    printf 'suite.sh: %d tests failed; more than %d do not run again\n' "$count" "$repeated_max" >&2
    finish FAILED
fi

printf '\n== failed tests once more, each alone\n'
for name in "${failed[@]}"; do
    printf 'test %s ... ' "$name"
    # A name that matches no test would pass too.
    if cargo test --locked --test suite -- --exact --test-threads=1 "$name" >"$work/second" 2>&1 &&
        grep -q '^test result: ok\. 1 passed' "$work/second"; then
        echo ok
        flaky+=("$name")
        passed=$((passed + 1)) count=$((count - 1))
    else
        echo FAILED
        sed 's/^test result:/second run:/' "$work/second"
    fi
done

if [ "${#flaky[@]}" -gt 0 ]; then
    printf '\n== flaky\n'
    for name in "${flaky[@]}"; do
        advice="not in tests/flaky.txt: repair it and add it there"
        ! grep -qF "$name: " tests/flaky.txt || advice="already in tests/flaky.txt: rewrite it"
        printf '%s failed and passed alone; %s\n' "$name" "$advice" | tee -a "$flaky_file"
        output_of "$name"
    done
fi

flaky_count="$(cat "$flaky_file" 2>/dev/null | sort -u | wc -l)"
if [ "$flaky_count" -gt "$flaky_max" ]; then
    printf 'suite.sh: %d flaky tests; more than %d fail the run\n' "$flaky_count" "$flaky_max" >&2
    finish FAILED
fi
[ "$count" -eq 0 ] || finish FAILED
finish ok
