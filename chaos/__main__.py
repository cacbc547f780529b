# SPDX-License-Identifier: Apache-2.0
"""`python -m chaos`: plays seeds and judges them."""

from __future__ import annotations

import sys

from chaos.cli import main

sys.exit(main(sys.argv[1:]))
