"""Types of what the build writes."""
# SPDX-License-Identifier: Apache-2.0

VERSION: str
TENSORFLOW_VERSION: str
