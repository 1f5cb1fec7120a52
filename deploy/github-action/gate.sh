#!/usr/bin/env bash
# Measures $COMMAND against $BASELINE. Ends with the gate's exit code: 3 where a peak grew, else the command's own.
set -uo pipefail
out=$RUNNER_TEMP/gpumemprof
mkdir -p "$out"
{
  echo "markdown=$out/memory.md"
  echo "junit=$out/memory.xml"
  echo "benchmark=$out/memory.json"
} >>"$GITHUB_OUTPUT"
rm -f "$out/memory.md"
gpumemprof gate --baseline "$BASELINE" --tolerance "$TOLERANCE" --markdown "$out/memory.md" --junit "$out/memory.xml" \
  --benchmark "$out/memory.json" -- bash -eo pipefail -c "$COMMAND"
code=$?
[ ! -e "$out/memory.md" ] || cat "$out/memory.md" >>"$GITHUB_STEP_SUMMARY"
exit $code
