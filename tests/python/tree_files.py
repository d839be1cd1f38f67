"""Writes trees into files, as a treebank has them."""
# SPDX-License-Identifier: Apache-2.0

import gzip

from benchmarks import treebank


def write_trees(path, trees):
    """Writes one tree a line, gzipped when the name ends in `.gz`."""
    open_file = gzip.open if path.suffix == ".gz" else open
    with open_file(path, "wt", encoding="utf-8") as file:
        file.writelines(treebank.format_tree(tree) + "\n" for tree in trees)
