// Marks what other libraries may call: everything else is hidden in the library.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_EXPORT_H_
#define TENSORFLOW_RECURSION_CC_BASE_EXPORT_H_

// Only the Python module links to the library, so what it calls is all there is. cc/exports.lds names it too.
#define TENSORFLOW_RECURSION_EXPORT __attribute__((visibility("default")))

#endif  // TENSORFLOW_RECURSION_CC_BASE_EXPORT_H_
