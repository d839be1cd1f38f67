// The bytecode of Fib: what the compiler makes of it, and what tests of the interpreter write by hand.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_FIB_LISTING_H_
#define TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_FIB_LISTING_H_

namespace tensorflow_recursion {

constexpr char kFibListing[] =
    "Fib(int32) -> int32\n"
    "    0  UnlessLessInt32K         r0, 2 -> 2\n"
    "    1  Return                   r0\n"
    "    2  SubInt32K                r2 = r0, 1\n"
    "    3  Call                     r1 = Fib(r2)\n"
    "    4  SubInt32K                r3 = r0, 2\n"
    "    5  Call                     r0 = Fib(r3)\n"
    "    6  AddInt32                 r0 = r1, r0\n"
    "    7  Return                   r0\n";

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_FIB_LISTING_H_
