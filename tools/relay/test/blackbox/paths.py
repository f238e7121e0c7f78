# SPDX-License-Identifier: GPL-2.0
"""Lets the modules that all black-box tests share be imported: each program imports this first."""

import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "..", "test", "blackbox"))
