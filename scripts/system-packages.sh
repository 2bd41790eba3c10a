#!/bin/sh
# Programs that tests use and pip cannot bring: Chromium, PostgreSQL and bubblewrap (Debian and Ubuntu).
missing=""
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || missing="$missing chromium"
[ "$(uname)" = Linux ] && { command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"; }
command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
[ -z "$missing" ] && exit 0
if command -v apt-get >/dev/null 2>&1; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    echo "Installing:$missing"
    # shellcheck disable=SC2086
    $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq $missing >/dev/null && exit 0
fi
echo "Not installed:$missing. Tests that need them will be skipped, not passed." >&2
exit 0
