#!/bin/sh
# Print the first Python >= 3.11 on this machine that can make environments, or say what to install.
for name in python3 python3.13 python3.12 python3.11 python; do
    path=$(command -v "$name" 2>/dev/null) || continue
    "$path" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    echo "$path"
    exit 0
done
echo "Podium needs Python 3.11 or newer with venv." >&2
echo "  Debian/Ubuntu: apt-get install python3 python3-venv    macOS: brew install python" >&2
exit 1
