#!/usr/bin/env bash
# Prepares the container and hands over to the worker. Nothing runs after `exec`, so nothing here may need cleaning up.
#
# Settings: docs/operations.md. Sourcing this file defines its functions without running them.
set -Eeuo pipefail

# die MESSAGE: say in one line what is wrong and what to do, and end the boot
die() {
  printf 'start.sh: %s\n' "$1" >&2
  exit 1
}

# warn MESSAGE
warn() {
  printf 'start.sh: warning: %s\n' "$1" >&2
}

# needs_gpu: whether the engine asked for runs on a GPU here
needs_gpu() {
  [[ ${GLMOCR_ENGINE:-sglang} == sglang || ${GLMOCR_ENGINE:-sglang} == transformers ]]
}

# check_gpu: a GPU is visible and its driver new enough for this image's CUDA (MIN_DRIVER, set in the Dockerfile).
# An older driver does not fail: torch falls back to the CPU without an error.
check_gpu() {
  command -v nvidia-smi >/dev/null ||
    die "no NVIDIA driver in this container (nvidia-smi is missing); choose a GPU machine, or set GLMOCR_ENGINE=rapidocr to run on the CPU"
  local driver
  driver=$(timeout -k 5 60 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || true
  # It tells its troubles on stdout, too, or hangs on a GPU that fell off the bus.
  [[ $driver =~ ^[0-9]+ ]] ||
    die "nvidia-smi sees no GPU (${driver:-it does not answer}); choose a GPU machine, or set GLMOCR_ENGINE=rapidocr to run on the CPU"
  local minimum=${MIN_DRIVER:-570}
  ((${driver%%.*} >= minimum)) ||
    die "the NVIDIA driver is $driver, this image needs $minimum or newer; allow only matching CUDA versions in the endpoint's settings"
}

# check_volume: results and finished pages outlive the worker only on a network volume
check_volume() {
  local path=${RUNPOD_VOLUME_PATH:-/runpod-volume}
  if [[ ! -d $path ]]; then
    warn "no network volume at $path: finished pages are lost with this worker, and models are downloaded at every start"
  elif [[ ! -w $path ]]; then
    warn "the network volume at $path cannot be written: no checkpoints, no stored results"
  fi
}

# check_disk: documents are staged in TMPDIR
check_disk() {
  local folder=${TMPDIR:-/tmp} free_mb
  free_mb=$(df -Pm "$folder" | awk 'NR == 2 {print $4}')
  ((free_mb >= 1024)) || die "only $free_mb MB free in $folder, at least 1024 needed; give the endpoint a larger container disk"
}

_main() {
  if needs_gpu; then
    check_gpu
  fi
  check_volume
  check_disk
  cd "$(dirname "${BASH_SOURCE[0]}")"
  if [[ -d /app/handler && ! -d handler ]]; then
    cd /app
  fi
  local python=${HANDLER_PYTHON:-/opt/handler-venv/bin/python}
  [[ -x $python ]] || die "no interpreter at $python; set HANDLER_PYTHON"
  # At DEBUG, its default, the RunPod SDK logs every job's input and result: whole documents.
  export RUNPOD_LOG_LEVEL=${RUNPOD_LOG_LEVEL:-INFO}
  exec "$python" -m handler "$@"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  _main "$@"
fi
