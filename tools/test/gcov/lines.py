# SPDX-License-Identifier: GPL-2.0
"""Which lines ran, as gcov says, and why others did not, as people say."""

import collections
import json
import os
import re
import subprocess
import sys

# @file is the path from the repository's top, @function the one that has the line, @text what
# the line says.
Line = collections.namedtuple("Line", "file number function text")

# A line that begins a function, or the use of a macro that defines something.
BEGINS = re.compile(r"(?=[A-Za-z]).*?(\w+)\(")

# A reason that begins with this is also right where the line was reached.
SOMETIMES = "Sometimes:"


def reports_of(folder, names):
    """What gcov says of objects, by their notes or counts."""
    names = sorted(names)
    for start in range(0, len(names), 50):
        said = subprocess.run(["gcov", "--json-format", "--stdout", *names[start:start + 50]],
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False, text=True)
        if said.returncode:
            sys.exit(f"gcov cannot read what is in {folder}. After a change of the source, counts "
                     "of before it cannot be added to: run coverage without --add.")
        for line in said.stdout.splitlines():
            yield json.loads(line)


def functions_of(texts):
    """The function of each of these lines. gcov does not know it of one that is inlined."""
    function, functions = "-", []
    for text in texts:
        begins = BEGINS.match(text)
        function = begins.group(1) if begins else function
        functions.append(function)
    return functions


class Lines:
    """How often each line of a product ran: of files in these folders, not below them, whose
    names end so. @base is what paths of files are relative to."""

    def __init__(self, base, folders, endings):
        self.base, self.folders, self.endings = base, folders, endings
        self.counts = collections.Counter()
        self.files = {}

    def add(self, folder, names):
        """The objects that have these notes or counts."""
        for report in reports_of(folder, names):
            for file in report["files"]:
                self._add_file(report["current_working_directory"], file)

    def _add_file(self, folder, file):
        # It was compiled from the folder of its Makefile.
        path = os.path.normpath(os.path.join(folder, file["file"]))
        path = os.path.relpath(path, self.base)
        if os.path.dirname(path) + "/" not in self.folders or not path.endswith(self.endings):
            return
        for line in file["lines"]:
            self.counts[path, line["line_number"]] += line["count"]

    def _line(self, path, number):
        if path not in self.files:
            with open(os.path.join(self.base, path), encoding="utf-8") as file:
                texts = file.read().split("\n")
            self.files[path] = functions_of(texts), texts
        functions, texts = self.files[path]
        return Line(path, number, functions[number - 1], texts[number - 1].strip())

    def all(self):
        """All of them, in order."""
        return [self._line(*key) for key in sorted(self.counts)]

    def unreached(self):
        """Those that did not run, in order."""
        return [self._line(*key) for key, count in sorted(self.counts.items()) if not count]

    def by_folder(self):
        """{folder: (how many lines ran, how many there are)}."""
        every, ran = collections.Counter(), collections.Counter()
        for (path, _), count in self.counts.items():
            every[os.path.dirname(path)] += 1
            ran[os.path.dirname(path)] += count > 0
        return {folder: (ran[folder], every[folder]) for folder in sorted(every)}


class Reasons:
    """Why lines are not reached. A paragraph has a file and a function, then lines of that
    function as they are, each after a tab and as often as it is not reached, then the reason."""

    def __init__(self, path):
        self.left = collections.defaultdict(list)
        with open(path, encoding="utf-8") as file:
            paragraphs = file.read().split("\n\n")
        for paragraph in paragraphs:
            lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
            if lines:
                self._read(lines)

    def _read(self, lines):
        file, function = lines[0].split()
        texts = [line.strip() for line in lines[1:] if line.startswith("\t")]
        reason = " ".join(line for line in lines[1:] if not line.startswith("\t"))
        if not texts or not reason:
            raise ValueError(f"a paragraph without lines, or without a reason: {lines[0]}")
        for text in texts:
            self.left[file, function, text].append(reason)

    def take(self, line):
        """The reason for this line, or None; it is used up."""
        reasons = self.left[line.file, line.function, line.text]
        return reasons.pop(0) if reasons else None

    def stale(self, lines):
        """[(file, function, text)] of reasons for lines that were reached, or are not among
        these."""
        there = {(line.file, line.function, line.text) for line in lines}
        return [key for key, reasons in self.left.items() for reason in reasons
                if key not in there or not reason.startswith(SOMETIMES)]
