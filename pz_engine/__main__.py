"""`python -m pz_engine` is the `pz` command."""

from __future__ import annotations

import sys

from pz_engine.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
