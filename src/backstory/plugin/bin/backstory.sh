#!/bin/sh
# Runs backstory, wherever it is installed.
#
#   backstory.sh ARGS...   run it; where it is not installed yet, say so and end
#   backstory.sh --setup   at the start of a session: where it is not installed, set it up in the background

umask 077
# The current folder is somebody's project, and nothing of a project is run: no program by an empty entry of
# PATH, no module by one of PYTHONPATH. -E -P are -I without -s, which would not see `pip install --user`.
case :${PATH:-}: in *::* | *:[!/]*) . "${0%/*}/whole_path.sh" ;; esac
unset PYTHONPATH PYTHONHOME PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX
case ${PYTHONUSERBASE:-} in /*) ;; *) unset PYTHONUSERBASE ;; esac

# Why there is no server now. Claude Code does not start a server again for 15 minutes that failed once, so an
# MCP server that cannot be there yet must not fail: it shakes hands, says why, has no tools, and ends.
unavailable() {
  # A slash command that fails is shown as a failed shell command, and this is no failure.
  [ "$2" != slash ] || { echo "backstory $1."; exit 0; }
  echo "backstory: $1" >&2
  [ "$2" = mcp ] || exit 1
  while read -r line; do
    id=${line##*'"id":'}
    id=${id%%[,\}]*}
    case $line in
      *'"method":"initialize"'*)
        version=${line#*'"protocolVersion":"'}
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"%s","capabilities":{},' "$id" "${version%%\"*}"
        printf '"serverInfo":{"name":"%s","version":"0"},"instructions":"backstory %s."}}\n' "$3" "$1" ;;
      *'"notifications/initialized"'*) exit 0 ;;
      *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"backstory %s"}}\n' "$id" "$1" ;;
    esac
  done
  exit 0
}

[ "${BACKSTORY_WORKER:-}" = 1 ] && unavailable "is switched off, because this is its own worker" "${1:-}" "${2:-memory}"

here=${0%/*}
noted=
{ read -r noted <"$here/../../../../interpreter"; } 2>/dev/null # by `backstory install`

# Claude Code tells its hooks and servers where the plugin's data lies, but no command that the model runs. A
# plugin from a marketplace is in plugins/cache/MARKET/PLUGIN/VERSION, its data in plugins/data/PLUGIN-MARKET.
data=${CLAUDE_PLUGIN_DATA:-}
if [ -z "$data" ]; then
  root=$(CDPATH= cd -- "$here/../../../.." && pwd)
  case $root in
    */plugins/cache/*/*/*)
      plugin=${root%/*}
      market=${plugin%/*}
      data=${market%/cache/*}/data/${plugin##*/}-${market##*/} ;;
  esac
fi
# Where not even a home is known, that is where everything lies; see data_folder() in paths.py.
if [ -z "${BACKSTORY_HOME:-}${XDG_DATA_HOME:-}${HOME:-}" ] && [ -n "${CLAUDE_PLUGIN_DATA:-}" ]; then
  BACKSTORY_HOME=$CLAUDE_PLUGIN_DATA
  export BACKSTORY_HOME
fi
own=${data:+$data/venv/bin/backstory}
status=${data:+$data/setup.status}

works() { [ -x "$1" ] && "$1" -E -P -c 'import backstory' 2>/dev/null; }

# An MCP server is in a hurry, so whether backstory is there is found out by the Python that runs it. Where it
# is not, that one comes back here.
run='import os, sys
try:
    import backstory, runpy
except ImportError:
    os.execve("/bin/sh", ["sh", *sys.argv[1:]], os.environ | {"BACKSTORY_NOT_THERE": "1"})
del sys.argv[0]
runpy.run_module("backstory", run_name="__main__", alter_sys=True)'

if [ "${1:-}" != --setup ]; then
  [ -x "$noted" ] && [ -z "${BACKSTORY_NOT_THERE:-}" ] && exec "$noted" -E -P -c "$run" "$0" "$@"
  unset BACKSTORY_NOT_THERE
  command -v backstory >/dev/null 2>&1 && exec backstory "$@"
  [ -x "$own" ] && exec "$own" "$@"
  why=
  { read -r why <"$status"; } 2>/dev/null
  case $why in
    "" | *[\"\\]*) why="is not set up yet; that happens in the background once a session has started" ;;
  esac
  unavailable "$why" "${1:-}" "${2:-memory}"
fi

[ -n "${CLAUDE_PLUGIN_DATA:-}" ] && mkdir -p "$CLAUDE_PLUGIN_DATA" || exit 0
works "$noted" && exit 0
found=$(command -v backstory 2>/dev/null) && ! [ "$found" -ef "$own" ] && exit 0 # our own may be an older one
[ -L "$status" ] && rm -f "$status" # it would lead elsewhere
if [ -n "$noted" ]; then
  echo "is gone from the Python it was installed with; install it again and run: backstory install" >"$status"
  exit 0
fi
for python in python3 python3.14 python3.13 python3.12 python3.11; do
  "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
  "$python" -I "$here/setup.py" "$here/../../../.." "$CLAUDE_PLUGIN_DATA" </dev/null >/dev/null 2>&1 &
  exit 0
done
echo "needs Python 3.11 or newer on PATH; install it and start a new session" >"$status"
