#!/bin/sh
# Within a system root of scripts/test-wheels: wheel_in_a_root.sh venv|uv|user. Its last line is "SECONDS OUTCOME".
set -eu
here=/srv/gpumemprof
wheel=$(ls "$here"/dist/gpumemprof-*.whl)
if [ "$1" = user ] && [ "$(id -u)" = 0 ]; then
  exec runuser -u someone -- env HOME="$(getent passwd someone | cut -d: -f6)" sh "$0" user
fi
program=training.py
if [ -e "$here/liballocate.so" ]; then
  export ALLOCATE_LIBRARY="$here/liballocate.so" PYTHONPATH="$here/pythons/standin"
  program=sizes.py
fi
left_out=
[ "$(uname -m)" != aarch64 ] || [ ! -e "$here/emulated" ] || left_out=children  # qemu says that it empties memory in a forked child, and does not
work=$(mktemp -d)
cd "$work"
case $1 in
  venv) python3 -m venv --system-site-packages "$work/venv" ;;
  uv)
    python3 -m venv "$work/tool" && "$work/tool/bin/pip" install -q --no-index "$here"/dist/uv-*.whl
    python3 -m venv --system-site-packages "$work/venv"
    ;;
esac
plain=0
python3 "$here/pythons/programs/$program" >&2 || plain=$?  # Debian 11's PyTorch aborts when it ends, recorded or not
begin=$(date +%s.%N)
case $1 in
  venv) bin=$work/venv/bin && "$bin/python3" -m pip install -q --no-index "$wheel" >&2 ;;
  uv) bin=$work/venv/bin && "$work/tool/bin/uv" pip install -q --offline --python "$bin/python3" "$wheel" >&2 ;;
  user)
    bin=$HOME/.local/bin
    python3 -m pip install -q --no-index --user --break-system-packages "$wheel" >&2 2>/dev/null ||
      python3 -m pip install -q --no-index --user "$wheel" >&2
    ;;
esac
python=python3
[ ! -x "$bin/python3" ] || python=$bin/python3
"$bin/gpumemprof" run -o run.gpumemprof -- "$python" "$here/pythons/programs/$program" >&2 || recorded=$?
[ "${recorded:-0}" = "$plain" ]
"$bin/gpumemprof" analyze run.gpumemprof >answer.txt
end=$(date +%s.%N)
cat answer.txt >&2
peak=$(grep -m 1 '^Peak ' answer.txt)
"$bin/gpumemprof" view run.gpumemprof --html page.html >&2
test -s page.html
"$python" -c 'import gpumemprof, gpumemprof._native, gpumemprof._marks; gpumemprof.load("run.gpumemprof")' >&2
checks="page, package"
if [ "$plain" != 0 ]; then
  checks="$checks; not checked: this PyTorch ends every program with exit code $plain"
elif [ "$1" = venv ]; then
  "$python" "$here/pythons/check_recording.py" "$bin/gpumemprof" $left_out >checks.txt 2>&1 || { cat checks.txt >&2; exit 1; }
  checks="$checks, $(tail -n 1 checks.txt)${left_out:+; not checked under qemu: $left_out}"
fi
cd / && rm -rf "$work"
awk -v a="$begin" -v b="$end" -v peak="$peak" -v checks="$checks" 'BEGIN { sub(/,.*/, "", peak); printf "%.1f %s; %s\n", b - a, peak, checks }'
