#!/bin/sh
# Within the root of scripts/test-wheels arm64: check_emulated.sh FOLDER, a copy of what the tests need. The wheel is
# installed anew; then what was recorded and what a program notices are tested, as everywhere.
set -eu
cd "$1"
python3 -m venv --system-site-packages /tmp/emulated
/tmp/emulated/bin/pip install -q --no-index /srv/gpumemprof/dist/gpumemprof-*.whl
export GPUMEMPROF_BIN=/tmp/emulated/bin/gpumemprof
python3 tests/pythons/peak_and_holders.py "$GPUMEMPROF_BIN" >peak_and_holders.json
python3 tests/pythons/page_sizes.py "$GPUMEMPROF_BIN"
python3 -m pytest -q -p no:cacheprovider tests/truth/test_known_tensors.py tests/truth/test_killed.py tests/safety/test_host_safety.py
