// SPDX-License-Identifier: Apache-2.0
#include "cc/native/loops.h"

#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// cc/native/loops_for_target.h is compiled once for each instruction set. It uses no templates of other headers: what
// the compiler makes of those in one set must not be linked into the code for another.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors go from function to function only where these are inlined
#endif

#define TFR_TARGET_NAMESPACE portable
#define TFR_TARGET
#define TFR_VECTOR_BYTES 16
#include "cc/native/loops_for_target.h"
#undef TFR_TARGET_NAMESPACE
#undef TFR_TARGET
#undef TFR_VECTOR_BYTES

#if defined(__x86_64__)
#define TFR_HAS_X86_TARGETS 1

#define TFR_TARGET_NAMESPACE avx2
#define TFR_TARGET __attribute__((target("avx2,fma")))
#define TFR_VECTOR_BYTES 32
#include "cc/native/loops_for_target.h"
#undef TFR_TARGET_NAMESPACE
#undef TFR_TARGET
#undef TFR_VECTOR_BYTES

#define TFR_TARGET_NAMESPACE avx512
#define TFR_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define TFR_VECTOR_BYTES 64
#include "cc/native/loops_for_target.h"
#undef TFR_TARGET_NAMESPACE
#undef TFR_TARGET
#undef TFR_VECTOR_BYTES
#endif

namespace tensorflow_recursion {

// The loops with the widest vectors are the last.
template <typename T>
std::vector<NamedLoops<T>> AllLoops() {
  std::vector<NamedLoops<T>> all;
  static const Loops<T> portable_loops = portable::MakeLoops<T>();
  all.push_back({"portable", &portable_loops});
#if defined(TFR_HAS_X86_TARGETS)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    static const Loops<T> avx2_loops = avx2::MakeLoops<T>();
    all.push_back({"avx2", &avx2_loops});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    static const Loops<T> avx512_loops = avx512::MakeLoops<T>();
    all.push_back({"avx512", &avx512_loops});
  }
#endif
  return all;
}

template <typename T>
const Loops<T>& BestLoops() {
  static const Loops<T>& best = *AllLoops<T>().back().loops;
  return best;
}

template std::vector<NamedLoops<float>> AllLoops<float>();
template std::vector<NamedLoops<double>> AllLoops<double>();
template const Loops<float>& BestLoops<float>();
template const Loops<double>& BestLoops<double>();

}  // namespace tensorflow_recursion
