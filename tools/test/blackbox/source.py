# SPDX-License-Identifier: GPL-2.0
"""A copy of the source, for suites that build it in another way."""

import os
import shutil
import subprocess


def bring(root, copy, name):
    """Make a file what it is in the source; what is the same keeps its time, for make."""
    source, mine = os.path.join(root, name), os.path.join(copy, name)
    if not os.path.exists(source):
        return
    os.makedirs(os.path.dirname(mine), exist_ok=True)
    with open(source, "rb") as file:
        content = file.read()
    if os.path.exists(mine):
        with open(mine, "rb") as file:
            if file.read() == content:
                return
    shutil.copyfile(source, mine)
    shutil.copymode(source, mine)


def bring_all(root, copy):
    """All files that git knows. Sources that it does not know any more would be compiled."""
    os.makedirs(copy, exist_ok=True)
    names = set(subprocess.check_output(["git", "ls-files", "-z"], cwd=root,
                                        text=True).split("\0")) - {""}
    for name in names:
        bring(root, copy, name)
    for top in {name.split("/")[0] for name in names if "/" in name}:
        for folder, _, files in os.walk(os.path.join(copy, top)):
            for file in files:
                path = os.path.join(folder, file)
                name = os.path.relpath(path, copy)
                if file.endswith((".c", ".cc", ".h")) and not file.endswith(".mod.c") and \
                        name not in names:
                    os.unlink(path)
