"""Files that AutoGraph makes of the user's functions."""
# SPDX-License-Identifier: Apache-2.0


def is_converted(file: str) -> bool:
    """Whether AutoGraph has made a file, of which the user knows nothing."""
    return "__autograph_generated_file" in file
