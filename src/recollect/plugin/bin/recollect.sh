#!/bin/sh
# Runs recollect, wherever it is installed.
#
#   recollect.sh ARGS...   run it; where it is not installed yet, say so and end at once
#   recollect.sh --setup   at the start of a session: where it is not installed, set it up in the background

umask 077
if [ "${RECOLLECT_WORKER:-}" = 1 ]; then
  echo "recollect: switched off, because this is recollect's own worker" >&2
  exit 0
fi

here=${0%/*}
python=
{ read -r python <"$here/../../../../interpreter"; } 2>/dev/null # noted by `recollect install`
own=${CLAUDE_PLUGIN_DATA:-}/venv/bin

if [ "${1:-}" != --setup ]; then
  command -v recollect >/dev/null 2>&1 && exec recollect "$@"
  [ -x "$python" ] && exec "$python" -m recollect "$@"
  [ -x "$own/recollect" ] && exec "$own/recollect" "$@"
  status=
  { read -r status <"${CLAUDE_PLUGIN_DATA:-}/setup.status"; } 2>/dev/null
  echo "recollect: ${status:-not set up yet; that happens in the background once a session has started}" >&2
  exit 1
fi

command -v recollect >/dev/null 2>&1 && exit 0
[ -x "$python" ] && exit 0
[ -n "${CLAUDE_PLUGIN_DATA:-}" ] || exit 0
mkdir -p "$CLAUDE_PLUGIN_DATA" || exit 0

for python in python3 python3.14 python3.13 python3.12 python3.11; do
  "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
  "$python" -I "$here/setup.py" "$here/../../../.." "$CLAUDE_PLUGIN_DATA" </dev/null >/dev/null 2>&1 &
  exit 0
done
echo "needs Python 3.11 or newer on PATH; install it and start a new session" >"$CLAUDE_PLUGIN_DATA/setup.status"
