"""How files begin, how long they and functions may be, and how much a class may hide, as CONTRIBUTING.md says."""
# SPDX-License-Identifier: Apache-2.0

import ast
import pathlib
import re

import pytest

pytestmark = pytest.mark.every_case

ROOT = pathlib.Path(__file__).resolve().parents[3]
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_PRIVATE_METHODS = 20  # of C++
MAX_PRIVATE_LINES = 100  # of the private methods of a Python class, together

# Longer ones, each with a reason why phases with names would not make it easier to read.
EXEMPT = {
    "Interpreter::Resume": "instructions go on by a goto, which reaches only labels of its own function",
}

_NO_FUNCTION = re.compile(
    r"\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|case|template|})\b"
)


def sources(*patterns):
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            if not {".venv", "build"} & set(path.relative_to(ROOT).parts):
                yield path, str(path.relative_to(ROOT))


def python_functions(text):
    """Yields name and length in lines of each function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.end_lineno - node.lineno + 1


def cc_functions(text):
    """The same for C++ in clang-format's layout: a body ends with the first brace that is indented as its head is."""
    lines = text.split("\n")
    for opening, line in enumerate(lines):
        if not line.endswith(" {") or ")" not in line:
            continue
        first, head = opening, line
        while head.count("(") < head.count(")") or head.lstrip().startswith(":"):
            first -= 1
            head = lines[first] + head
        indent = " " * (len(head) - len(head.lstrip()))
        last = next((i for i in range(opening + 1, len(lines)) if lines[i].startswith(indent + "}")), None)
        name = re.search(r"([\w:~]+)\(", head)
        if len(indent) <= 4 and last is not None and name and not _NO_FUNCTION.match(head):
            yield name[1], last - first + 1


def cc_classes(text):
    """Yields name and number of private methods of each class of C++ in clang-format's layout."""
    lines = text.split("\n")
    for opening, line in enumerate(lines):
        head = re.match(r"( *)(?:class|struct) (?:\w+\([^)]*\) )?(\w+)[^;]*\{$", line)
        if not head:
            continue
        indent, name = head.groups()
        method = re.compile(indent + r"  (?!using |friend |static_assert)[A-Za-z][\w:<>,*& ]*[ *&]\w+\(")
        is_private, count = False, 0
        for member in lines[opening + 1 :]:
            if member.startswith(indent + "}"):
                break
            if access := re.fullmatch(indent + r" (public|protected|private):", member):
                is_private = access[1] == "private"
            count += is_private and method.match(member) is not None
        yield name, count


def python_classes(text):
    """Yields name and number of lines in private methods of each class."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            private = [one for one in methods if one.name.startswith("_") and not one.name.endswith("__")]
            yield node.name, sum(one.end_lineno - one.lineno + 1 for one in private)


def test_files_name_their_licence_on_a_line_of_its_own():
    code = sources("cc/**/*.cc", "cc/**/*.h", "tests/**/*.cc", "tests/**/*.h", "*/**/*.py", "*.py")
    licence = re.compile(r"^(//|#) SPDX-License-Identifier: Apache-2\.0$", re.MULTILINE)
    without = [name for path, name in code if not licence.search(path.read_text())]
    assert set(without) <= {"tensorflow_recursion/_build_info.py"}, "the build writes that one"


def test_files_are_short():
    code = sources("cc/**/*.cc", "cc/**/*.h", "tests/**/*.cc", "tests/**/*.h", "*/**/*.py", "*.py")
    lengths = {name: len(path.read_text().splitlines()) for path, name in code}
    assert len(lengths) > 300
    assert {name: length for name, length in lengths.items() if length > MAX_FILE_LINES} == {}


@pytest.mark.parametrize(
    "patterns, functions",
    [(("*/**/*.py", "*.py"), python_functions), (("cc/**/*.cc", "cc/**/*.h", "tests/cc/**/*.cc"), cc_functions)],
    ids=["Python", "C++"],
)
def test_functions_are_short(patterns, functions):
    lengths = [(name, *function) for path, name in sources(*patterns) for function in functions(path.read_text())]
    assert len(lengths) > 1000
    assert [entry for entry in lengths if entry[2] > MAX_FUNCTION_LINES and entry[1] not in EXEMPT] == []


def test_length_of_a_cc_function_is_found():
    text = "void F(int x,\n       int y) {\n  if (x) {\n  }\n}\n\nC::C(int x)\n    : x_(x) {\n  F(x, x);\n}\n"
    assert list(cc_functions(text)) == [("F", 5), ("C::C", 4)]


# One with more does several things: give each a class of its own, with its own state and test.
@pytest.mark.parametrize(
    "patterns, classes, limit",
    [
        (("cc/**/*.cc", "cc/**/*.h"), cc_classes, MAX_PRIVATE_METHODS),
        (("tensorflow_recursion/**/*.py", "benchmarks/**/*.py", "tools/**/*.py"), python_classes, MAX_PRIVATE_LINES),
    ],
    ids=["C++", "Python"],
)
def test_classes_hide_little(patterns, classes, limit):
    counts = [(name, *found) for path, name in sources(*patterns) for found in classes(path.read_text())]
    assert len(counts) > 130
    assert [entry for entry in counts if entry[2] > limit] == []


def test_private_methods_of_a_cc_class_are_counted():
    text = (
        "class C {\n public:\n  void F();\n\n private:\n  struct S {\n    void Inner();\n  };\n\n"
        "  int G(int x) {\n    return H(x);\n  }\n  static const T* H(int x);\n\n  int x_ = 0;\n};\n"
    )
    assert list(cc_classes(text)) == [("C", 2), ("S", 0)]


def test_lines_of_private_methods_of_a_python_class_are_counted():
    text = (
        "class C:\n    def __init__(self): ...\n\n    @property\n    def _f(self):\n        return 1\n\n"
        "    class D:\n        def _g(self): ...\n\n        def h(self): ...\n\n    def _i(self): ...\n"
    )
    assert sorted(python_classes(text)) == [("C", 3), ("D", 1)]
