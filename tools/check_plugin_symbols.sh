#!/bin/sh
# usage: check_plugin_symbols.sh FILE
# Checks that a plugin exports only its query function.
set -u
[ $# -eq 1 ] || { echo "usage: $0 FILE" >&2; exit 2; }
symbols=$(nm -D --defined-only --format=posix "$1") || exit 2
names=$(printf '%s\n' "$symbols" | sed 's/[ @].*//' | sort)
[ "$names" = opmux_plugin_query_v1 ] && exit 0
echo "$1 must export exactly opmux_plugin_query_v1; it exports:" >&2
printf '%s\n' "${names:-(nothing)}" | sed 's/^/  /' >&2
exit 1
