"""Runs the program `gleaner` of this package: `python -m gleaner run --workers 2 -- python3 train.py`.

Without arguments it prints the program's help.
"""

from __future__ import annotations

import sys

from gleaner import _programs

if __name__ == "__main__":
    _programs.run("gleaner", ["gleaner", *(sys.argv[1:] or ["--help"])])
