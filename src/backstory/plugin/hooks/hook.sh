#!/bin/sh
# Every hook of backstory. What happened goes into the spool as a file, and that is all Claude Code waits for.
#
#   hook.sh           PostToolUse and the like: into the spool, nothing more
#   hook.sh failure   a tool failed: the same; where a test failed that was mended before, the model is told
#   hook.sh drain     compactions: afterwards a process of its own drains the spool and starts the worker where
#                     there is work
#   hook.sh stop      the end of a turn: as drain; but first, where `claude_md.on_stop` is agent and files of an
#                     initialised project changed, the model is told so by Python, once
#   hook.sh prompt    a prompt: as drain, and the model is told what waits in the outbox for this session, else
#                     what is asked of it in a note and, with its first prompts, what the memory server knows
#                     about them
#   hook.sh start     a session begins: the drain at once, with the brief for the model and a line for the user;
#                     backstory is set up where it is not installed yet
#   hook.sh end       a session ends: as drain, and wait for it (Claude Code allows 1.5 s; the drain outlives that)
#
# These are no events of a session, and nothing of them is kept:
#
#   hook.sh file      a file is about to be read or edited: the model is told what is known of it
#   hook.sh allow     a tool of ours is about to be used: need the user be asked?
#
# hook.sh prints only answers to the client and always exits with 0: whatever goes wrong, the agent is not
# disturbed. A full disk leaves a part of the payload in tmp/, which the next drain reports.

# --- what hook.sh knows of Claude Code; tests/clients/test_hook_block.py holds it to clients/claude_code.py ---
plugin_data=${CLAUDE_PLUGIN_DATA:-}
project=${CLAUDE_PROJECT_DIR:-.}
session=${CLAUDE_CODE_SESSION_ID:-}
# In a payload: a tool that changes a file, the beginning of a command, a failed command, a file without signs
# that JSON escapes.
edit='"tool_name": ?"(Edit|MultiEdit|NotebookEdit|Write)"'
command='"command": ?"'
failed='"tool_name": ?"Bash"'
file='"(file_path|notebook_path)": ?"/[^"\\]*"'
# The fields that have a prompt, and what a failed command printed.
prompt_field=prompt error_field=error
# Around a string of JSON: a text for the model at one of these events, if there is one; for the user.
context() { [ -z "$2" ] || printf '{"hookSpecificOutput": {"hookEventName": "%s", "additionalContext": %s}}\n' "$@"; }
at_prompt=UserPromptSubmit at_file=PreToolUse at_failure=PostToolUseFailure
message() { printf '{"systemMessage": "%s"}\n' "$1"; }
# --- end ---

umask 077
# An empty entry of PATH, or one like `.`, is the project, and nothing of a project is run.
case :${PATH:-}: in *::* | *:[!/]*) . "${0%/*}/../bin/whole_path.sh" ;; esac

drop() { # read what is not kept all the same: a closed pipe might be an error to the client
  cat >/dev/null 2>&1
  exit 0
}
[ "${BACKSTORY_WORKER:-}" = 1 ] && drop

# The same rule as data_folder() in paths.py; where that has nothing to go by, BACKSTORY_HOME says it.
if [ -n "${BACKSTORY_HOME:-}" ]; then data=$BACKSTORY_HOME
elif [ "${XDG_DATA_HOME:-}" != "${XDG_DATA_HOME#/}" ]; then data=$XDG_DATA_HOME/backstory
elif [ -n "${HOME:-}" ]; then data=$HOME/.local/share/backstory
elif [ -n "$plugin_data" ]; then
  data=$plugin_data BACKSTORY_HOME=$plugin_data
  export BACKSTORY_HOME
else drop
fi
case $data in /*) ;; *) drop ;; esac # it would be another one in each folder

mode=${1:-} here=${0%/*}
case $session in *[!A-Za-z0-9_-]*) session= ;; esac # it is a part of files' names
# A name that no other hook has. Linux hands one out without a process; elsewhere pid and time do.
{ read -r name </proc/sys/kernel/random/uuid || name=$$-$PPID-$(date +%s); } 2>/dev/null

# --- Python -------------------------------------------------------------------------------------------------

find_python() { # the interpreter that `backstory install` noted, else the plugin's own, else what PATH has
  python=
  { read -r python <"$here/../../../../interpreter"; } 2>/dev/null
  [ -x "$python" ] || python=${plugin_data:+$plugin_data/venv/bin/python}
  [ -x "$python" ] || python=python3
}
run='import sys; sys.path.insert(0, sys.argv[1]); from backstory.surfaces import hook; hook.main(*sys.argv[2:])'
asking='import sys; sys.path.insert(0, sys.argv[1]); from backstory.surfaces import asking; asking.main(*sys.argv[2:])'
run_python() { # only in a subshell, which becomes Python: that saves a process
  find_python
  program=$1
  shift
  exec "$python" -I -S -X utf8 -c "$program" "$here/../../.." "$@" 2>/dev/null
}
ask() { run_python "$asking" "$1" "$data" "$session" "$project" "$PPID" "$2"; } # prints a string of JSON, or nothing
can_ask() { # is there a server?
  [ -n "$session" ] || return 1
  for socket in "$data"/run/*.sock; do
    [ ! -S "$socket" ] || return 0
  done
  return 1
}

# --- paused -------------------------------------------------------------------------------------------------

is_paused() { # the same rule as in paused.py
  at=$(CDPATH='' cd -- "$project" 2>/dev/null && pwd -P)
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in '') continue ;; '*') return 0 ;; esac
    case $at/ in "${line%/}"/*) return 0 ;; esac
  done 2>/dev/null <"$data/paused"
  return 1
}
if [ -e "$data/paused" ] && is_paused; then
  [ "$mode" != start ] || [ "${BACKSTORY_DISPLAY:-}" = quiet ] ||
    grep -qsE '^[[:space:]]*display[[:space:]]*=[[:space:]]*["'\'']quiet' "$data/config.toml" ||
    message 'backstory: paused here; /backstory:resume or `backstory resume` goes on'
  drop
fi

# --- before a tool: nothing is kept -------------------------------------------------------------------------

tell_of_file() { # each file once a session, and of two at most
  [ -s "$data/known/files" ] && [ "${BACKSTORY_RECALL_FILES:-}" != off ] && can_ask || drop
  field=$(LC_ALL=C grep -oE "$file" 2>/dev/null) || return
  path=/${field#*\"/} path=${path%%\"*} asked=$data/run/$session.files
  LC_ALL=C grep -qsxF -e "$path" "$data/known/files" || return
  if [ -f "$asked" ]; then
    LC_ALL=C grep -qsxF -e "$path" "$asked" && return
    [ "$(grep -csxF told "$asked")" -lt 2 ] || return
  fi
  context $at_file "$(ask file "$path" </dev/null)"
}

case $mode in
  file) tell_of_file; exit 0 ;;
  allow)
    [ "${BACKSTORY_PERMISSIONS:-}" != ask ] && (run_python "$run" allow) || drop
    exit 0
    ;;
esac

# --- into the spool -----------------------------------------------------------------------------------------

spool=$data/spool
{ [ -d "$spool/new" ] && [ -d "$spool/tmp" ]; } ||
  mkdir -p "$spool/tmp" "$spool/new" "$spool/failed" 2>/dev/null || {
    [ "$mode" != start ] ||
      message 'backstory: nothing is remembered, its data folder cannot be written; backstory doctor says what to do'
    drop
  }

asks_agent() { # is claude_md.on_stop agent? Where this cannot tell, yes: Python knows
  case ${BACKSTORY_CLAUDE_MD_ON_STOP-unset} in
    unset) [ -e "$data/config.toml" ] || return 1 ;;
    '' | auto | off) return 1 ;;
    *) return 0 ;;
  esac
  [ -r "$data/config.toml" ] || return 0
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      'on_stop = "auto"' | 'on_stop = "off"') ;;
      *on_stop* | *\\*) return 0 ;; # a backslash may spell it otherwise
    esac
  done <"$data/config.toml"
  return 1
}

look_for_changes() { # sets changed; or looking, a process that succeeds where something changed
  # The same rule as root_of() in dirty.py; up the folders as they are on disk, whatever links led here.
  at=$project
  until [ -f "$at/.claude/.dirty-files" ] || [ -e "$at/.git" ] || [ "$at" -ef "$at/.." ] || [ ${#at} -gt 4000 ]
  do at=$at/..
  done 2>/dev/null
  if [ -s "$at/.claude/.dirty-files" ]; then changed=yes
  elif [ -f "$at/.claude/.dirty-files" ]; then
    for payload in "$spool/new"/*; do break; done
    [ -e "$payload" ] || return
    # Of a turn with tools; they are looked through while our own payload comes in.
    apart='[^A-Za-z0-9_.-]'
    removal=$command'(([^"\\]|\\.)*('"$apart"'|\\.))?(rm|mv)'"$apart"
    LC_ALL=C grep -rqsE "$edit|$removal" "$spool/new" 2>/dev/null &
    looking=$!
  fi
}

ask_at_prompt() { # once a session; asking.py notes that it is done
  [ "${BACKSTORY_RECALL_PROMPT:-}" != off ] && can_ask || return 0
  asked=
  [ ! -f "$data/run/$session.prompts" ] || read -r asked <"$data/run/$session.prompts" || return 0
  [ "$asked" = 'done' ] || text=$(ask prompt "$prompt_field") || :
}

ask_at_failure() {
  [ -s "$data/known/tests" ] && [ "${BACKSTORY_RECALL_FILES:-}" != off ] && can_ask || return 0
  known=$(LC_ALL=C grep -F -f "$data/known/tests" | LC_ALL=C grep -E "$failed")
  [ -z "$known" ] || text=$(printf '%s' "$known" | ask failure "$error_field") || :
}

changed=no looking='' text='' notice='' tmp=$spool/tmp/$name new=$spool/new/$name
[ "$mode" != stop ] || ! asks_agent || look_for_changes
set -C # never overwrite
case $mode in
  start) # a small payload, and the brief needs it too
    payload=$(cat)
    { printf '%s' "$payload" >"$tmp" && mv "$tmp" "$new"; } 2>/dev/null ||
      notice='backstory: what happens is not captured, the disk may be full; backstory doctor says what to do'
    ;;
  prompt | failure) # opened first: a drain may take the file away as soon as it is in the spool
    { cat >"$tmp" && { mv "$tmp" "$new"; "ask_at_$mode"; } <"$tmp" || cat >/dev/null; } 2>/dev/null
    ;;
  *) { cat >"$tmp" && mv "$tmp" "$new" || cat >/dev/null; } 2>/dev/null ;;
esac
set +C
[ -z "$looking" ] || ! wait "$looking" || changed=yes

# --- the answer, and what happens after it ------------------------------------------------------------------

tell_from() { # a file of the outbox and the server's text, as one
  news=$(cat "$1") || return
  [ -z "$text" ] || [ -z "$news" ] || news=${news%\"}'\n\n'${text#\"}
  context $at_prompt "${news:-$text}"
  text=
}

answer_prompt() {
  [ -n "$session" ] || return
  waiting=$data/outbox/$session
  set -- "$waiting".* # of hooks that were killed before they had told it
  if [ -f "$waiting" ]; then # that was written later, and all of theirs is in it
    # From here on it is ours: a server may put something newer there while we read.
    mv "$waiting" "$waiting.$name" && tell_from "$waiting.$name" && rm -f "$@" "$waiting.$name"
  elif [ -f "$1" ]; then tell_from "$1" && rm -f "$1"
  elif [ -f "$data/notes/$session" ]; then # not beside the outbox, which may be as long as the client takes
    note=$data/notes/$session.$name request=
    mv "$data/notes/$session" "$note" && read -r request <"$note" && rm -f "$note"
    [ -z "$text" ] || [ -z "$request" ] || text=${text%\"}'\n\n'${request#\"}
    text=${text:-$request}
  fi 2>/dev/null
  context $at_prompt "$text"
}

answer_start() {
  sh "$here/../bin/backstory.sh" --setup </dev/null >/dev/null 2>&1 &
  find_python
  if [ "$python" = python3 ] && [ -n "$plugin_data" ] && ! command -v backstory >/dev/null 2>&1; then
    # The same that backstory.sh says in place of a server.
    why=
    { read -r why <"$plugin_data/setup.status"; } 2>/dev/null
    case $why in '' | *[\"\\]*) read -r why <"$here/../bin/setting_up.txt" ;; esac
    notice="backstory $why"
  fi
  answer=$(printf '%s' "$payload" | run_python "$run" start "$notice")
  if [ -n "$answer" ]; then printf '%s\n' "$answer"
  elif [ -n "$notice" ]; then message "$notice"
  fi
}

case $mode in
  '') exit 0 ;;
  failure) context $at_failure "$text"; exit 0 ;;
  start) answer_start; exit 0 ;;
  prompt) answer_prompt ;;
  stop) [ "$changed" = no ] || (run_python "$run" announce "$name" </dev/null) ;;
esac
run_python "$run" "$mode" </dev/null >/dev/null &
if [ "$mode" = end ]; then
  if [ -n "$session" ]; then
    set -- "$data/run/$session".*
    [ ! -f "$1" ] || rm -f "$@" 2>/dev/null
  fi
  wait # at the end the user does not, and the memories are there when the next session begins
fi
exit 0
