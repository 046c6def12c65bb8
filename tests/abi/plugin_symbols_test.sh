#!/bin/sh
# usage: plugin_symbols_test.sh CHECKER LEAKY MUTE
# The checker must refuse, with status 1 and the reason, a plugin that exports too much and one
# without an entry function.
refuses() {
  text=$("$1" "$2" 2>&1)
  status=$?
  [ $status -eq 1 ] && printf '%s' "$text" | grep -q "^  $3" && return
  echo "$2: expected a refusal that names $3, got status $status and: $text"
  exit 1
}
refuses "$1" "$2" leaked_symbol
refuses "$1" "$3" '(nothing)'
