#!/usr/bin/env bash
# Runs the tests of gleaner.jax and gleaner.tensorflow with current versions from PyPI, which take 2 GB.
# usage: tests/python/current_frameworks.sh [FOLDER]   a virtual environment to make or use; default: build/current-frameworks
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=${1:-build/current-frameworks}
if [[ ! -x $venv/bin/python ]]; then
  /usr/bin/python3 -m venv "$venv"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check jax jaxlib optax tensorflow-cpu numpy scikit-learn pytest
export PYTHONPATH=comm-lib/python PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=3
"$venv/bin/python" -c 'from importlib.metadata import version
print(", ".join(f"{name} {version(name)}" for name in ("jax", "optax", "tensorflow-cpu", "keras", "numpy")))'
"$venv/bin/python" -m pytest -q tests/python/test_jax.py tests/python/test_tensorflow.py tests/python/test_bundles.py
