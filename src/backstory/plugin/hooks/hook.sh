#!/bin/sh
# Every hook of backstory: stdin goes into the spool as a file, and that is all Claude Code waits for.
#
#   hook.sh         PostToolUse and the like: into the spool, nothing more
#   hook.sh drain   compactions: afterwards a process of its own drains the spool and starts the worker where
#                   there is work
#   hook.sh stop    the end of a turn: as drain; but first, where files of an initialised project changed, the
#                   model is told so by Python, once
#   hook.sh prompt  a prompt: as drain, and what waits in the outbox for this session is printed for the model
#   hook.sh start   a session begins: the same at once, and the brief is printed for the model; backstory is
#                   set up where it is not installed yet
#   hook.sh end     a session ends: as drain, and wait for it (Claude Code allows 1.5 s; the drain outlives that)
#
# Nothing but the brief, the outbox and what changed is printed and the exit code is always 0: whatever goes
# wrong here, the agent is not disturbed.
# A full disk leaves a part of the payload in tmp/, which the next drain reports.

# --- what hook.sh knows of Claude Code; tests/clients/test_hook_block.py holds it to clients/claude_code.py ---
plugin_data=${CLAUDE_PLUGIN_DATA:-}
project=${CLAUDE_PROJECT_DIR:-.}
session=${CLAUDE_CODE_SESSION_ID:-}
# In a payload: a tool that changes a file, and the beginning of a command.
edit='"tool_name": ?"(Edit|MultiEdit|NotebookEdit|Write)"'
command='"command": ?"'
# Around a string of JSON: at a prompt, a text for the model.
context='{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": '
context_end='}}'
# --- end ---

umask 077
# An empty entry of PATH, or one like `.`, is the project, and nothing of a project is run.
case :${PATH:-}: in *::* | *:[!/]*) . "${0%/*}/../bin/whole_path.sh" ;; esac

drop() { # what nobody wants is read all the same: a closed pipe might be an error to the client
  cat >/dev/null 2>&1
  exit 0
}
[ "${BACKSTORY_WORKER:-}" = 1 ] && drop

# The same rule as data_folder() in paths.py; where that knows none, it is told.
if [ -n "${BACKSTORY_HOME:-}" ]; then data=$BACKSTORY_HOME
elif [ "${XDG_DATA_HOME:-}" != "${XDG_DATA_HOME#/}" ]; then data=$XDG_DATA_HOME/backstory
elif [ -n "${HOME:-}" ]; then data=$HOME/.local/share/backstory
elif [ -n "$plugin_data" ]; then
  data=$plugin_data BACKSTORY_HOME=$plugin_data
  export BACKSTORY_HOME
else drop
fi
case $data in /*) ;; *) drop ;; esac # it would be another one in each folder

spool=$data/spool
{ [ -d "$spool/new" ] && [ -d "$spool/tmp" ]; } ||
  mkdir -p "$spool/tmp" "$spool/new" "$spool/failed" 2>/dev/null || drop

# A name nobody else has. Linux hands one out without a process; elsewhere pid and time do.
{ read -r name </proc/sys/kernel/random/uuid || name=$$-$PPID-$(date +%s); } 2>/dev/null

changed=no looking=
if [ "${1:-}" = stop ]; then
  # The same rule as root_of() in dirty.py; up the folders as they are on disk, whatever links led here.
  at=$project
  until [ -f "$at/.claude/.dirty-files" ] || [ -e "$at/.git" ] || [ "$at" -ef "$at/.." ] || [ ${#at} -gt 4000 ]
  do at=$at/..
  done 2>/dev/null
  if [ -s "$at/.claude/.dirty-files" ]; then changed=yes
  elif [ -f "$at/.claude/.dirty-files" ]; then
    for payload in "$spool/new"/*; do break; done
    if [ -e "$payload" ]; then # of a turn with tools; they are looked through while our own comes in
      apart='[^A-Za-z0-9_.-]'
      removal=$command'(([^"\\]|\\.)*('"$apart"'|\\.))?(rm|mv)'"$apart"
      LC_ALL=C grep -rqsE "$edit|$removal" "$spool/new" 2>/dev/null &
      looking=$!
    fi
  fi
fi

set -C # never overwrite
if [ "${1:-}" = start ]; then # a small payload, and the brief needs it too
  payload=$(cat)
  { printf '%s' "$payload" >"$spool/tmp/$name" && mv "$spool/tmp/$name" "$spool/new/$name"; } 2>/dev/null
else
  { cat >"$spool/tmp/$name" && mv "$spool/tmp/$name" "$spool/new/$name" || cat >/dev/null; } 2>/dev/null
fi
set +C
[ -z "$looking" ] || ! wait "$looking" || changed=yes

[ $# -gt 0 ] || exit 0

mode=$1
if [ "$mode" = prompt ]; then
  waiting=$data/outbox/$session
  tell() { text=$(cat "$1") && { [ -z "$text" ] || printf '%s\n' "$context$text$context_end"; }; }
  case $session in
    '' | *[!A-Za-z0-9_-]*) ;;
    *)
      set -- "$waiting".* # of hooks that were killed before they had told it
      if [ -f "$waiting" ]; then # that was written later, and all of theirs is in it
        # From here on it is ours: a server may put something newer there while we read.
        mv "$waiting" "$waiting.$name" && tell "$waiting.$name" && rm -f "$@" "$waiting.$name"
      elif [ -f "$1" ]; then tell "$1" && rm -f "$1"
      fi 2>/dev/null
      ;;
  esac
fi

here=${0%/*}
if [ "$mode" = start ]; then sh "$here/../bin/backstory.sh" --setup </dev/null >/dev/null 2>&1 & fi

# The interpreter that `backstory install` noted, else the plugin's own, else what PATH has.
python=
{ read -r python <"$here/../../../../interpreter"; } 2>/dev/null
[ -x "$python" ] || python=${plugin_data:+$plugin_data/venv/bin/python}
[ -x "$python" ] || python=python3

run='import sys; sys.path.insert(0, sys.argv[1]); from backstory.surfaces import hook; hook.main(*sys.argv[2:])'
if [ "$mode" = start ]; then
  printf '%s' "$payload" | "$python" -I -S -X utf8 -c "$run" "$here/../../.." start 2>/dev/null
  exit 0
fi
if [ "$changed" = yes ]; then
  "$python" -I -S -X utf8 -c "$run" "$here/../../.." announce "$name" </dev/null 2>/dev/null
fi
"$python" -I -S -X utf8 -c "$run" "$here/../../.." "$mode" </dev/null >/dev/null 2>&1 &
[ "$mode" != end ] || wait # nobody minds at the end, and the memories are there when the session is gone
exit 0
