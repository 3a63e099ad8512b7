#!/usr/bin/env bash
# Runs the tests of gleaner.torch, and the programs of docs/pytorch.md, with the current PyTorch from PyPI (CI runs them with Debian's).
# usage: tests/python/current_torch.sh [FOLDER]   a virtual environment to make or use; default: build/current-torch
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=${1:-build/current-torch}
if [[ ! -x $venv/bin/python ]]; then
  /usr/bin/python3 -m venv "$venv"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check torch numpy pytest ml_dtypes scikit-learn \
  accelerate expecttest lightning
"$venv/bin/python" -c 'import sys, torch; print(f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}")'
PYTHONPATH=comm-lib/python PYTHONDONTWRITEBYTECODE=1 \
  "$venv/bin/python" -m pytest -q tests/python/test_torch.py tests/python/test_numpy.py \
  tests/python/test_lars.py tests/python/test_rates.py \
  tests/python/test_distributed.py tests/python/test_invited_summers.py tests/python/test_pytorch_document.py
