// Marks what other libraries may call. Everything else is hidden in the library.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_EXPORT_H_
#define TENSORFLOW_RECURSION_CC_BASE_EXPORT_H_

// Only the Python module links to the library, so only what it calls is marked. cc/exports.lds lists the same.
#define TENSORFLOW_RECURSION_EXPORT __attribute__((visibility("default")))

#endif  // TENSORFLOW_RECURSION_CC_BASE_EXPORT_H_
