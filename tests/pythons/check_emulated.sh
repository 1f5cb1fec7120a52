#!/bin/sh
# Within the root of scripts/test-wheels arm64: check_emulated.sh FOLDER, a copy of what the tests need. The wheel is
# installed anew; then what was recorded and what a program notices are tested, as everywhere.
set -eu
cd "$1"
rm -rf /tmp/emulated
python3 -m venv --system-site-packages /tmp/emulated
/tmp/emulated/bin/pip install -q --no-index /srv/gpumemprof/dist/gpumemprof-*.whl
export GPUMEMPROF_BIN=/tmp/emulated/bin/gpumemprof
/tmp/emulated/bin/python3 tests/pythons/peak_and_holders.py "$GPUMEMPROF_BIN" >peak_and_holders.json
python3 tests/pythons/page_sizes.py "$GPUMEMPROF_BIN"
# Not under qemu: it has no seccomp, says that it empties memory in a forked child and does not, writes a file for
# /proc/self/stat (a limit of 0 bytes is its own end), knows no setuid, and itself ends programs with small stacks or
# masked signals.
not_here="seccomp or strict or no_file_at_all or small_stack or masked or setuid or forks_in_a_storm"
python3 -m pytest -q -p no:cacheprovider tests/truth/test_killed.py tests/safety/test_host_safety.py \
  -k "not pytorch_program and not ($not_here)"
