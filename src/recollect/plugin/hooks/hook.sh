#!/bin/sh
# Every hook of recollect: stdin goes into the spool as a file, and that is all Claude Code waits for.
#
#   hook.sh         PostToolUse and the like: into the spool, nothing more
#   hook.sh drain   prompts and ends of turns: afterwards the spool is drained by a process of its own
#   hook.sh start   a session begins: as drain, and recollect is set up where it is not installed yet
#   hook.sh end     a session ends: as drain, and wait for it (Claude Code allows 1.5 s; the drain outlives that)
#
# Nothing is printed and the exit code is always 0: whatever goes wrong here, the agent is not disturbed.
# A full disk leaves a part of the payload in tmp/, which the next drain reports.

umask 077
[ "${RECOLLECT_WORKER:-}" = 1 ] && exec cat >/dev/null

# The same rule as data_folder() in paths.py.
if [ -n "${RECOLLECT_HOME:-}" ]; then data=$RECOLLECT_HOME
elif [ -n "${XDG_DATA_HOME:-}" ]; then data=$XDG_DATA_HOME/recollect
elif [ -n "${HOME:-}" ]; then data=$HOME/.local/share/recollect
elif [ -n "${CLAUDE_PLUGIN_DATA:-}" ]; then data=$CLAUDE_PLUGIN_DATA
else exec cat >/dev/null
fi

spool=$data/spool
{ [ -d "$spool/new" ] && [ -d "$spool/tmp" ]; } ||
  mkdir -p "$spool/tmp" "$spool/new" "$spool/failed" 2>/dev/null || exec cat >/dev/null

# A name nobody else has. Linux hands one out without a process; elsewhere pid and time do.
{ read -r name </proc/sys/kernel/random/uuid || name=$$-$PPID-$(date +%s); } 2>/dev/null

set -C # never overwrite
{ cat >"$spool/tmp/$name" && mv "$spool/tmp/$name" "$spool/new/$name" || cat >/dev/null; } 2>/dev/null
set +C

[ $# -gt 0 ] || exit 0

here=${0%/*}
if [ "$1" = start ]; then sh "$here/../bin/recollect.sh" --setup </dev/null >/dev/null 2>&1 & fi

# The interpreter that `recollect install` noted, else the plugin's own, else what PATH has.
python=
{ read -r python <"$here/../../../../interpreter"; } 2>/dev/null
[ -x "$python" ] || python=${CLAUDE_PLUGIN_DATA:+$CLAUDE_PLUGIN_DATA/venv/bin/python}
[ -x "$python" ] || python=python3

"$python" -I -S -X utf8 -c 'import sys; sys.path.insert(0, sys.argv[1]); from recollect.surfaces import hook; hook.main()' \
  "$here/../../.." </dev/null >/dev/null 2>&1 &
[ "$1" != end ] || wait # nobody minds at the end, and the memories are there when the session is gone
exit 0
