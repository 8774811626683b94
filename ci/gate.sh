#!/bin/sh
# Runs `tare gate` in a CI job and leaves gate.json, junit.xml and summary.md in TARE_OUT (default: tare-gate).
#
#   gate.sh [OPTION…] -- CMD ARG…        options and command of `tare gate`
#   TARE_BUILD, TARE_OPTIONS, TARE_COMMAND    the same as variables, for runners that pass no arguments
#
# Tare is the file TARE, or is downloaded from TARE_URL and must have the SHA-256 TARE_SHA256. Texts of a pull request
# come in as variables and arguments and never become a part of this script.
set -eu

out=${TARE_OUT:-tare-gate}
mkdir -p "$out"

tare=${TARE:-}
if [ -z "$tare" ]; then
    if [ -z "${TARE_URL:-}" ] || [ -z "${TARE_SHA256:-}" ]; then
        echo "error: set TARE_URL and TARE_SHA256, or TARE to a file that is there" >&2
        exit 2
    fi
    tare=$out/tare
    curl --fail --silent --show-error --location --proto '=https' --output "$tare" "$TARE_URL"
    printf '%s  %s\n' "$TARE_SHA256" "$tare" | sha256sum --check --status || {
        echo "error: the file from TARE_URL does not have the SHA-256 of TARE_SHA256" >&2
        exit 2
    }
    chmod +x "$tare"
fi

runner=none
[ -z "${GITLAB_CI:-}" ] || runner=gitlab
[ -z "${GITHUB_ACTIONS:-}" ] || runner=github

if [ -n "${TARE_COMMAND:-}" ]; then
    # Split at blanks, and nothing else: no globs, no quotes, no substitutions.
    set -f
    # shellcheck disable=SC2086
    set -- "$@" ${TARE_OPTIONS:-}
    [ -z "${TARE_BUILD:-}" ] || set -- "$@" --build "$TARE_BUILD"
    # shellcheck disable=SC2086
    set -- "$@" -- ${TARE_COMMAND}
    set +f
fi

status=0
"$tare" gate --json "$out/gate.json" --junit "$out/junit.xml" --summary "$out/summary.md" \
    --annotations "$runner" "$@" || status=$?

if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$out/summary.md" ]; then
    cat "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
