#!/usr/bin/env bash
# Runs the small kernels of gpu_test under compute-sanitizer: memcheck, racecheck, synccheck and initcheck. Fails if a
# tool is missing, printed no summary, reports anything, or does not find the bug that is planted for it.
# usage: sanitize.sh [GPU_TEST]   default: gpu_test beside this script. COMPUTE_SANITIZER names the tool.
set -uo pipefail

gpu_test="${1:-$(dirname "${BASH_SOURCE[0]}")/gpu_test}"
sanitizer="${COMPUTE_SANITIZER:-compute-sanitizer}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

fail() {
  printf 'sanitize: %s\n' "$*" >&2
  failed=1
}

command -v "$sanitizer" >/dev/null || { fail "$sanitizer is not there; it comes with the CUDA toolkit"; exit 1; }
[ -x "$gpu_test" ] || { fail "$gpu_test is not there"; exit 1; }

run_under() {  # run_under TOOL ARGUMENT...: the tool's exit code; its output is in $log
  local tool="$1" options=()
  shift
  # Asking a thread without a context for its device is an API error that means nothing; padding keeps allocations
  # apart, so that what lies behind one is never the next.
  [ "$tool" = memcheck ] && options=(--report-api-errors no --padding 4096)
  "$sanitizer" --tool "$tool" "${options[@]}" --error-exitcode 99 --print-limit 20 \
    "$gpu_test" --require-gpu "$@" >"$log" 2>&1
}

# Errors by the summary; nothing if there is none.
errors_found() {
  sed -nE 's/^=+ ERROR SUMMARY: ([0-9]+) error.*/\1/p; s/^=+ RACECHECK SUMMARY: ([0-9]+) hazard.*/\1/p' "$log" | tail -1
}

show() { grep -vE '^\[ +(RUN|OK) +\]' "$log" | tail -60 >&2; }

for tool in memcheck racecheck synccheck initcheck; do
  start=$SECONDS
  run_under "$tool" "--plant=$tool"
  found=$(errors_found)
  if [ -z "$found" ] || [ "$found" = 0 ]; then
    fail "$tool does not find the bug that is planted for it (summary: ${found:-none})"
    show
    continue
  fi

  subset='SanitizerSubset.*' left_out=""
  # Why: reads_behind_one_arrival() in subset_test.cpp.
  if [ "$tool" = racecheck ]; then
    subset+='-*ReadBehindOneArrival'
    left_out=', weight gradients that read behind one arrival left out'
  fi
  run_under "$tool" "--gtest_filter=$subset"
  code=$?
  errors=$(errors_found)
  kernels=$(sed -nE 's/^gpu suite: .* ([0-9]+) kernels,.*/\1/p' "$log")
  if [ "$code" != 0 ] || [ "$errors" != 0 ]; then
    fail "$tool: exit code $code, summary: ${errors:-none}"
    show
  elif [ "${kernels:-0}" -lt 20 ]; then
    fail "$tool saw ${kernels:-0} kernels, not 20 or more"
    show
  else
    printf 'sanitize: %s: %s kernels without an error%s, planted bug found (%s reported), %s s\n' \
      "$tool" "$kernels" "$left_out" "$found" $((SECONDS - start))
  fi
done
exit $failed
