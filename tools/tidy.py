#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the house style that a machine can check; prints each breach as FILE:LINE: rule: text.

tools/tidy.ratchet lists the breaches that are allowed to stay, one `rule file[:function]` a line. It may only
shrink: a listed breach that is gone is an error too. `--commits N` checks the subjects of the last N commits.
"""
import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("nic", "state", "dataplane", "control", "tools", "tests")
TOP_LEVEL = {"nic", "state", "dataplane", "control", "configs", "tools", "tests"}
MAY_INCLUDE = {
    "nic": {"nic"},
    "state": {"state"},
    "dataplane": {"dataplane", "nic", "state"},
    "control": {"control", "dataplane", "nic", "state", "tools"},
}
LIBRARIES = {
    "liburing.h": "state", "xxhash.h": "state", "librdkafka": "control", "lz4": "dataplane", "zstd.h": "dataplane",
    "snappy": "dataplane", "zlib.h": "dataplane", "isa-l": "dataplane", "openssl": "dataplane", "crc.h": "dataplane", "pcre2.h": "dataplane",
    "yaml.h": "control", "microhttpd.h": "control",
}
FILE_LINES_MAX = 1000
FUNCTION_LINES_MAX = 70
NESTING_MAX = 4
COLUMNS_MAX = 100
SUBJECT_MAX = 72
MUTABLE_ALLOWED = {"control/main.c"}


def strip(text):
    """The text with comments, strings and preprocessor lines blanked, line breaks kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def blocks(code):
    """Yields (header text, start line of the header, line of {, line of }, deepest nesting) of each top-level brace block."""
    depth, start, begin, deepest, parens = 0, 0, 0, 0, 0
    for i, c in enumerate(code):
        if c == "(":
            parens += 1
        elif c == ")":
            parens -= 1
        elif c == "{":
            if depth == 0:
                begin, deepest = i, 1
            depth += 1
            deepest = max(deepest, depth)
        elif c == "}":
            depth -= 1
            if depth == 0:
                header = code[start:begin]
                first = start + len(header) - len(header.lstrip())
                yield header.strip(), code.count("\n", 0, first) + 1, code.count("\n", 0, begin) + 1, code.count("\n", 0, i) + 1, deepest
                start = i + 1
        elif c == ";" and depth == 0 and parens == 0:
            start = i + 1


def is_function(header):
    return header.endswith(")") and "=" not in header.split("(")[0] and not re.match(r"(struct|enum|union|typedef)\s+\w+\s*$", header)


def function_name(header):
    found = re.search(r"([A-Za-z_]\w*)\s*\(", header)
    return found.group(1) if found else "?"


def check_text(name, text):
    """Rules that look at lines."""
    lines = text.split("\n")
    if "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        yield 1, "licence", "the first line is not the SPDX line", ""
    if len(lines) > FILE_LINES_MAX:
        yield len(lines), "file-length", f"{len(lines)} lines, at most {FILE_LINES_MAX}", ""
    if name.endswith(".h") and "#pragma once" not in text:
        yield 1, "pragma-once", "missing", ""
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, "columns", f"{len(line)} columns, at most {COLUMNS_MAX}", ""
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))", line):
            yield number, "todo", "a TODO carries an issue number: TODO(#3)", ""
        if re.match(r"\s*#\s*if\s+0\b", line):
            yield number, "dead-code", "#if 0", ""


def check_includes(name, text):
    folder = name.split("/")[0]
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not found:
            continue
        quote, path = found.groups()
        other = path.split("/")[0]
        if quote == '"' and other in FOLDERS and folder in MAY_INCLUDE and other not in MAY_INCLUDE[folder]:
            yield number, "layers", f"{folder}/ must not include {path}", ""
        if quote == '"' and path.endswith("_internal.h") and str(Path(path).parent) != str(Path(name).parent) \
                and not name.startswith("tests/"):
            yield number, "internal", f"{path} belongs to another folder", ""
        for library, home in LIBRARIES.items():
            if quote == "<" and path.startswith(library) and folder not in (home, "tests", "tools"):
                yield number, "libraries", f"{path} is {home}/'s", ""


def check_functions(name, code):
    for header, start, _, end, deepest in blocks(code):
        if not is_function(header):
            continue
        function = function_name(header)
        if end - start + 1 > FUNCTION_LINES_MAX:
            yield start, "function-length", f"{function}: {end - start + 1} lines, at most {FUNCTION_LINES_MAX}", function
        if deepest - 1 > NESTING_MAX:
            yield start, "nesting", f"{function}: nested {deepest - 1} deep, at most {NESTING_MAX}", function


def check_mutable(name, code):
    """File-scope and function-static variables that can change."""
    if name in MUTABLE_ALLOWED or name.endswith(".cc") or name.startswith("tests/"):
        return
    outside = list(code)
    for header, start, first, last, _ in blocks(code):
        if is_function(header):
            begin = sum(len(x) + 1 for x in code.split("\n")[:first - 1])
            end = sum(len(x) + 1 for x in code.split("\n")[:last])
            for i in range(begin, min(end, len(outside))):
                if outside[i] != "\n":
                    outside[i] = " "
    for found in re.finditer(r"^(?:static\s+)?(?!.*\bconst\b)(?:_Thread_local\s+)?(?:unsigned |struct |enum )?\w+[\s*]+\w+(?:\[[^]]*\])*\s*(?:=|;)",
                             "".join(outside), re.M):
        text = found.group(0)
        if not re.match(r"(extern|typedef|return|struct \w+;|enum \w+;|union \w+;)", text) and "(" not in text:
            yield code.count("\n", 0, found.start()) + 1, "mutable", text.strip(), ""
    for found in re.finditer(r"^[ \t]+static\s+(?!const\b|inline\b|_Thread_local const)(?![^;=(]*\bconst\b)[^;=(]+[;=]", code, re.M):
        yield code.count("\n", 0, found.start()) + 1, "mutable", found.group(0).strip(), ""


def check_docstrings(name, text, code):
    """Every function that a header declares or defines has a comment right above it."""
    lines = text.split("\n")
    starts = []
    for found in re.finditer(r"^(?!static_assert|_Static_assert|typedef|#|[ \t}])[A-Za-z_][\w \t*]*?[ \t*]([a-z_]\w*)\s*\(", code, re.M):
        starts.append((code.count("\n", 0, found.start()) + 1, found.group(1)))
    depth = 0
    inside = []
    for line in code.split("\n"):
        inside.append(depth)
        depth += line.count("{") - line.count("}")
    for line, function in starts:
        if inside[line - 1] > 0:
            continue
        above = line - 2
        while above >= 0 and re.match(r"\s*(__attribute__|FUNCTION)", lines[above]):
            above -= 1
        if above < 0 or not lines[above].rstrip().endswith("*/"):
            yield line, "docstring", f"{function} has none", function


def check_mirror(name):
    found = re.match(r"tests/(.+)/test_(\w+)\.c$", name)
    if found and found.group(1).split("/")[0] in ("nic", "state", "dataplane", "control"):
        folder, module = found.groups()
        if not any((ROOT / folder / f"{module}{end}").exists() for end in (".c", ".cc", ".h", ".l", ".y")):
            yield 1, "mirror", f"no {folder}/{module}.c", ""


def check_header_alone(name):
    run = subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                          "-fsyntax-only", "-I", str(ROOT), *DPDK_FLAGS, "-include", name, "-x", "c", "/dev/null"],
                         cwd=ROOT, capture_output=True, text=True)
    if run.returncode != 0:
        yield 1, "header-alone", run.stderr.strip().split("\n")[0], ""


def check_file(path):
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    found = list(check_text(name, text))
    if path.suffix in (".c", ".h", ".cc"):
        code = strip(text)
        found += check_includes(name, text)
        found += check_functions(name, code)
        found += check_mutable(name, code)
        found += check_mirror(name)
        if path.suffix == ".h":
            found += check_docstrings(name, text, code)
            found += check_header_alone(name)
    return [(name, *x) for x in found]


def check_commits(count):
    log = subprocess.run(["git", "log", f"-{count}", "--no-merges", "--format=%h %s"], cwd=ROOT, capture_output=True, text=True, check=True)
    for line in log.stdout.splitlines():
        commit, subject = line.split(" ", 1)
        if len(subject) > SUBJECT_MAX or subject.endswith(".") or not re.match(r"[a-z][\w/, .-]*: \S", subject):
            yield f"commit {commit}", 0, "subject", subject, ""


def check_top_level():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for folder in sorted({x.split("/")[0] for x in tracked if "/" in x and not x.startswith(".")} - TOP_LEVEL):
        yield folder, 0, "folders", "is not one of the design's top-level folders", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=200)
    args = parser.parse_args()
    ratchet_file = ROOT / "tools/tidy.ratchet"
    allowed = {x.strip() for x in ratchet_file.read_text().splitlines() if x.strip() and not x.startswith("#")}
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h", "*.cc", "*.l", "*.y"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [ROOT / x for x in listed if (ROOT / x).exists()]
    with ThreadPoolExecutor(2) as pool:
        breaches = [x for found in pool.map(check_file, paths) for x in found]
    breaches += list(check_top_level()) + list(check_commits(args.commits))
    seen, failed = set(), 0
    for name, line, rule, text, function in breaches:
        key = f"{rule} {name}" + (f":{function}" if function else "")
        seen.add(key)
        if key not in allowed:
            failed += 1
            print(f"{name}:{line}: {rule}: {text}")
    for key in sorted(allowed - seen):
        failed += 1
        print(f"tools/tidy.ratchet: {key}: is mended; take the line out")
    print(f"tidy: {len(paths)} files, {failed} breaches, {len(allowed)} allowed")
    return 1 if failed else 0


DPDK_FLAGS = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True).stdout.split()

if __name__ == "__main__":
    sys.exit(main())
