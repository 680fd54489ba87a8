# SPDX-License-Identifier: BSD-3-Clause
"""Started by scripts/bench.sh as a file, so that the user's folder is not searched for modules."""
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
