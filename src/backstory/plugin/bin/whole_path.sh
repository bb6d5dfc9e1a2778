# Read by hook.sh and backstory.sh: leaves of PATH what are whole paths. An empty entry is the current folder.

rest=${PATH:-}: PATH=
while [ -n "$rest" ]; do
  case $rest in /*) PATH=${PATH:+$PATH:}${rest%%:*} ;; esac
  rest=${rest#*:}
done
PATH=${PATH:-/usr/bin:/bin}
export PATH
