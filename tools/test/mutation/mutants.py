# SPDX-License-Identifier: GPL-2.0
"""Small faults in C: where they can be put, and what they are."""

import collections
import re

# @file is the path from the repository's top, @line counts from 1, @function is the one that has
# the line, @kind says what was done, @before and @after are the line without and with the fault.
Mutant = collections.namedtuple("Mutant", "file line function kind before after")

# What is turned into what. In a line, each place is a mutant of its own.
SWAPS = (
    ("comparison", r" < ", " <= "), ("comparison", r" <= ", " < "),
    ("comparison", r" > ", " >= "), ("comparison", r" >= ", " > "),
    ("comparison", r" == ", " != "), ("comparison", r" != ", " == "),
    ("connective", r" && ", " || "), ("connective", r" \|\| ", " && "),
    ("sum", r"(?<=[\w)\]]) \+ ", " - "), ("sum", r"(?<=[\w)\]]) - ", " + "),
    ("step", r"\+\+", "--"), ("step", r"--", "++"),
    ("truth", r"\btrue\b", "false"), ("truth", r"\bfalse\b", "true"),
    ("condition", r"(?<=\bif \()(?=[^()]*(?:\([^()]*\)[^()]*)*\)\s*\{?$)", "!!!"),
)
NUMBER = re.compile(r"(?<![\w.\"'#])(\d+)(?![\w.\"'xX])")
# A statement on a line of its own: a call, or a change of something.
CALL = re.compile(r"^\t+[a-z_]\w*\(.*\);$")
CHANGE = re.compile(r"^\t+[*a-z_][\w>.\[\]()*-]*(?:->|\.)?[\w\])]* (?:[-+|&^]|<<|>>)?= .*;$"
                    r"|^\t+(?:\+\+|--)?[a-z_][\w>.\[\]()-]*(?:\+\+|--)?;$")
LOCK = re.compile(r"(?<![a-z])(?:un)?lock(?:_\w+)?\(")
# These lines do nothing that a test could notice: messages, checks, hints, and trace points.
SILENT = re.compile(r"\b(?:log_\w+|pr_\w+|WARN\w*|BUG\w*|lockdep_\w+|static_assert|assert\w*"
                    r"|prefetch\w*|trace_\w+|might_sleep|likely|unlikely|MODULE_\w+|check_\w+"
                    r"|kmemleak_\w+|cond_resched|__acquire\w*|__release\w*|EXPORT_\w+|case)\b")
DECLARES = re.compile(r"^\t+(?:static |const |struct |enum |union |unsigned |volatile )*"
                      r"[a-z_]\w* \**\w+(?:\[.*\])?(?: = .*)?[;,]$")


def without_comments(text):
    """The text with comments and strings blank, so that places stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def body_lines(masked):
    """(number from 0, function) of the lines that are in functions of the product."""
    inside, is_check, found = False, False, []
    before = function = ""
    for number, line in enumerate(masked):
        if line.startswith("#"):
            is_check = "WHEEL_CHECK" in line and not line.startswith("#endif")
        if is_check:
            continue
        if line.startswith("{") and before.rstrip().endswith((")", ",")):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and line.startswith("\t"):
            found.append((number, function))
        name = re.match(r"[a-z].*?(\w+)\(", line)
        if name:
            function = name.group(1)
        if line.strip():
            before = line
    return found


def is_whole(masked, number):
    """Does a statement begin in this line?"""
    before = masked[number - 1].rstrip()
    return not before or before.endswith((";", "{", "}", ":", ")", "else"))


def mutants_of_line(line, masked):
    """(kind, changed line) of each fault of a line."""
    for kind, pattern, to in SWAPS:
        for match in re.finditer(pattern, masked):
            if kind == "condition":
                end = masked.rindex(")")
                yield kind, f"{line[:match.start()]}!({line[match.start():end]}){line[end:]}"
            else:
                yield kind, line[:match.start()] + to + line[match.end():]
    for match in NUMBER.finditer(masked):
        yield "constant", f"{line[:match.start()]}{int(match.group(1)) + 1}{line[match.end():]}"


def mutants_of(path, text):
    """All mutants of a file."""
    lines, masked = text.split("\n"), without_comments(text).split("\n")
    for number, function in body_lines(masked):
        line, bare = lines[number], masked[number].rstrip()
        if SILENT.search(bare) or bare.endswith("\\"):
            continue
        for kind, changed in mutants_of_line(line, bare):
            yield Mutant(path, number + 1, function, kind, line, changed)
        if is_whole(masked, number) and not DECLARES.match(bare) and \
                (CALL.match(bare) or CHANGE.match(bare)):
            indent = line[:len(line) - len(line.lstrip("\t"))]
            kind = "lock dropped" if LOCK.search(bare) else "line removed"
            yield Mutant(path, number + 1, function, kind, line, f"{indent};")


def choose(mutants, count, random):
    """So many of them: each file gets its share, and each kind in a file has the same chance."""
    by_file = collections.defaultdict(lambda: collections.defaultdict(list))
    for mutant in mutants:
        by_file[mutant.file][mutant.kind].append(mutant)
    total = sum(len(some) for kinds in by_file.values() for some in kinds.values())
    left = {file: [some for _, some in sorted(kinds.items())]
            for file, kinds in sorted(by_file.items())}
    weights = {file: sum(map(len, kinds)) / total for file, kinds in left.items()}
    chosen = []
    while len(chosen) < count and left:
        file = random.choices(list(left), [weights[one] for one in left])[0]
        some = random.choice(left[file])
        chosen.append(some.pop(random.randrange(len(some))))
        left[file] = [one for one in left[file] if one]
        if not left[file]:
            del left[file]
    return chosen
