// The products of cc/native/loops.h for one instruction set. It is a part of cc/native/loops_for_target.h, whose macros
// and functions it uses.
// SPDX-License-Identifier: Apache-2.0

// How many rows are multiplied at once, and how many sums, each a vector, there are registers for.
constexpr int kRowsAtOnce = TFR_VECTOR_BYTES == 64 ? 8 : TFR_VECTOR_BYTES == 32 ? 3 : 2;
constexpr int kMostSums = TFR_VECTOR_BYTES == 64 ? 24 : TFR_VECTOR_BYTES == 32 ? 12 : 8;

// A weight of more than kBytesNearby does not stay in the first-level cache. If more than two rows are multiplied with
// it at once, each of its rows is prefetched kRowsAhead rows before it is needed.
constexpr int64_t kBytesNearby = int64_t{1} << 15;
constexpr int64_t kRowsAhead = 10;

// Divides `count` things into as few groups of at most `most` as possible, all about equal, and returns how many things
// a group has. For example, 9 rows at most 8 at once are done in groups of 5.
TFR_INLINE int64_t EvenShare(int64_t count, int64_t most) {
  const int64_t groups = (count + most - 1) / most;
  return (count + groups - 1) / groups;
}

// A table of functions that are made for one number each: of[n] is Functions::Of<n>(), for n from 1 to kMost.
template <typename Functions, int64_t kMost>
struct ByNumber {
  decltype(Functions::template Of<1>()) of[kMost + 1] = {};

  constexpr ByNumber() { Set<kMost>(); }
  template <int kNumber>
  constexpr void Set() {
    of[kNumber] = Functions::template Of<kNumber>();
    if constexpr (kNumber > 1) Set<kNumber - 1>();
  }
};

// Which columns of the weight are multiplied at once: kVectors vectors side by side, beginning with column `first`. The
// last vector begins with column `last`, so that it ends with the last column: it may overlap with the one before, and
// then computes some results twice.
struct ColumnTile {
  int64_t first, last;
};

// Adds to the sums number k of each row of x times row k of the weight, which lies at `weights`.
template <int kRows, int kVectors, typename T>
TFR_INLINE void AddWeightRow(const T* const* x, int64_t k, const T* weights, const ColumnTile& tile,
                             Vec<T> (*sums)[kVectors]) {
  TFR_UNROLLED for (int v = 0; v < kVectors; ++v) {
    Vec<T> part = Load(weights + (v == kVectors - 1 ? tile.last : tile.first + v * kLanes<T>));
    TFR_KEEP_IN_REGISTER(part);
    TFR_UNROLLED for (int r = 0; r < kRows; ++r) sums[r][v] += x[r][k] * part;
  }
}

#if TFR_VECTOR_BYTES == 64 && !defined(__clang__)
#define TFR_SHIFTS_LINES 1
// How many numbers lie before this one in its cache line.
template <typename T>
TFR_INLINE int64_t NumbersIntoLine(const T* number) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(number) % TFR_VECTOR_BYTES / sizeof(T));
}

// Does the same, but loads whole cache lines and shifts their numbers into place, because a vector that lies across two
// lines takes twice as long to come from the second-level cache. Reads up to a line before and behind the vectors.
template <int kRows, int kVectors, typename T>
TFR_INLINE void AddShiftedWeightRow(const T* const* x, int64_t k, const T* weights, const ColumnTile& tile,
                                    Vec<T> (*sums)[kVectors]) {
  const T* const from = weights + tile.first;
  const int64_t shift = NumbersIntoLine(from);
  const Bits<T> lanes = LaneNumbers<T>() + static_cast<int>(shift);
  Vec<T> line = Load(from - shift);
  TFR_UNROLLED for (int v = 0; v < kVectors; ++v) {
    Vec<T> part;
    if (v == kVectors - 1) {
      part = Load(weights + tile.last);
    } else {
      Vec<T> next = Load(from - shift + (v + 1) * kLanes<T>);
      TFR_KEEP_IN_REGISTER(next);
      part = __builtin_shuffle(line, next, lanes);
      line = next;
    }
    TFR_UNROLLED for (int r = 0; r < kRows; ++r) sums[r][v] += x[r][k] * part;
  }
}
#endif

// Adds the rows of a weight that is not in the first-level cache, except for the last ones. Returns how many it has
// added.
template <int kRows, int kVectors, typename T>
TFR_INLINE int64_t AddFarWeight(const T* const* x, const T* w, int64_t depth, int64_t columns, const ColumnTile& tile,
                                Vec<T> (*sums)[kVectors]) {
  int64_t k = 0;
  // With more rows, it takes longer to multiply the weight than to read it.
  if constexpr (kRows <= 2) {
#if defined(TFR_SHIFTS_LINES)
    // To read whole lines needs a row of the weight before and one behind, which the first and the last row do not
    // have.
    AddWeightRow<kRows, kVectors>(x, k++, w, tile, sums);
    for (; k < depth - 1; ++k) AddShiftedWeightRow<kRows, kVectors>(x, k, w + k * columns, tile, sums);
#endif
    return k;
  }
  for (; k < depth - kRowsAhead; ++k) {
    const T* const weights = w + k * columns;
    TFR_UNROLLED for (int v = 0; v < kVectors; ++v) {
      __builtin_prefetch(weights + kRowsAhead * columns + tile.first + v * kLanes<T>);
    }
    AddWeightRow<kRows, kVectors>(x, k, weights, tile, sums);
  }
  return k;
}

template <int kRows, int kVectors, typename T>
TFR_INLINE void ProductTile(const T* const* x, const T* w, T* const* out, int64_t depth, int64_t columns,
                            const ColumnTile& tile) {
  const T* rows[kRows];
  TFR_UNROLLED for (int r = 0; r < kRows; ++r) rows[r] = x[r];
  Vec<T> sums[kRows][kVectors] = {};
  const bool is_far = depth * columns * static_cast<int64_t>(sizeof(T)) > kBytesNearby;
  int64_t k = is_far ? AddFarWeight<kRows, kVectors>(rows, w, depth, columns, tile, sums) : 0;
  for (; k < depth; ++k) AddWeightRow<kRows, kVectors>(rows, k, w + k * columns, tile, sums);
  TFR_UNROLLED for (int r = 0; r < kRows; ++r) {
    TFR_UNROLLED for (int v = 0; v < kVectors; ++v) {
      Store(sums[r][v], out[r] + (v == kVectors - 1 ? tile.last : tile.first + v * kLanes<T>));
    }
  }
}

// Multiplies `vectors` vectors of columns, at most kVectors.
template <int kRows, int kVectors, typename T>
TFR_INLINE void ProductTileOf(int64_t vectors, const T* const* x, const T* w, T* const* out, int64_t depth,
                              int64_t columns, const ColumnTile& tile) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) return ProductTileOf<kRows, kVectors - 1>(vectors, x, w, out, depth, columns, tile);
  }
  ProductTile<kRows, kVectors>(x, w, out, depth, columns, tile);
}

template <int kRows, typename T>
TFR_TARGET void ProductOfRows(const T* const* x, const T* w, T* const* out, int64_t depth, int64_t columns) {
  constexpr int kMostVectors = kMostSums / kRows < 10 ? kMostSums / kRows : 10;
  const int64_t vectors = (columns + kLanes<T> - 1) / kLanes<T>;
  const int64_t at_once = EvenShare(vectors, kMostVectors);
  for (int64_t v = 0; v < vectors; v += at_once) {
    const int64_t count = at_once < vectors - v ? at_once : vectors - v;
    const int64_t end = (v + count) * kLanes<T>;
    const ColumnTile tile{v * kLanes<T>, (end < columns ? end : columns) - kLanes<T>};
    ProductTileOf<kRows, kMostVectors>(count, x, w, out, depth, columns, tile);
  }
}

template <typename T>
struct ProductsOfRows {
  template <int kRows>
  static constexpr auto Of() {
    return ProductOfRows<kRows, T>;
  }
};

template <typename T>
TFR_TARGET void WideProduct(const T* const* x, const T* w, T* const* out, int64_t rows, int64_t depth,
                            int64_t columns) {
  static constexpr ByNumber<ProductsOfRows<T>, kRowsAtOnce> kProducts;
  const int64_t at_once = EvenShare(rows, kRowsAtOnce);
  for (int64_t r = 0; r < rows; r += at_once) {
    kProducts.of[at_once < rows - r ? at_once : rows - r](x + r, w, out + r, depth, columns);
  }
}

// The vector of numbers[i] for each i in `lanes`.
template <typename T>
TFR_INLINE Vec<T> Pick(const Vec<T>& numbers, const Bits<T>& lanes) {
#if defined(__clang__)
  T from[kLanes<T>], to[kLanes<T>];
  Store(numbers, from);
  for (int i = 0; i < kLanes<T>; ++i) to[i] = from[lanes[i]];
  return Load(to);
#else
  return __builtin_shuffle(numbers, lanes);
#endif
}

// Multiplies one row with a weight that has fewer columns than a vector has lanes. kColumns vectors of the weight hold
// the rows for one vector of x: lane i of vector n belongs to number (n * kLanes + i) / kColumns of x.
template <int kColumns, typename T>
TFR_TARGET void NarrowProduct(const T* x, const T* w, T* out, int64_t depth) {
  Bits<T> lanes[kColumns];
  TFR_UNROLLED for (int n = 0; n < kColumns; ++n) {
    lanes[n] = (LaneNumbers<T>() + static_cast<int>(n * kLanes<T>)) / kColumns;
  }
  Vec<T> sums[kColumns] = {};
  int64_t k = 0;
  for (; k + kLanes<T> <= depth; k += kLanes<T>) {
    const Vec<T> numbers = Load(x + k);
    TFR_UNROLLED for (int n = 0; n < kColumns; ++n) {
      sums[n] += Pick<T>(numbers, lanes[n]) * Load(w + k * kColumns + n * kLanes<T>);
    }
  }
  if (k < depth) {
    const Vec<T> numbers = LoadSome(x + k, depth - k);
    TFR_UNROLLED for (int n = 0; n < kColumns; ++n) {
      const int64_t first = k * kColumns + n * kLanes<T>, left = depth * kColumns - first;
      if (left > 0) sums[n] += Pick<T>(numbers, lanes[n]) * LoadSome(w + first, left < kLanes<T> ? left : kLanes<T>);
    }
  }
  T parts[kColumns * kLanes<T>];
  TFR_UNROLLED for (int n = 0; n < kColumns; ++n) Store(sums[n], parts + n * kLanes<T>);
  for (int64_t half = kColumns * kLanes<T> / 2; half >= kColumns; half /= 2) {
    for (int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  for (int j = 0; j < kColumns; ++j) out[j] = parts[j];
}

template <typename T>
struct NarrowProducts {
  template <int kColumns>
  static constexpr auto Of() {
    return NarrowProduct<kColumns, T>;
  }
};

// Multiplies rows with a weight that has fewer columns than a vector has lanes, and at most as many rows: each row of
// the weight is one vector, filled in part. For example, the gradient of a classifier's weight for one node, whose
// vector [d, 1] is multiplied with the gradient [1, 5] of its logits.
template <typename T>
TFR_TARGET void ShortNarrowProduct(const T* const* x, const T* w, T* const* out, int64_t rows, int64_t depth,
                                   int64_t columns) {
  Vec<T> weights[kLanes<T>];
  for (int64_t k = 0; k < depth; ++k) weights[k] = LoadSome(w + k * columns, columns);
  for (int64_t r = 0; r < rows; ++r) {
    Vec<T> sum{};  // so that a sum of zeros is 0, not -0
    for (int64_t k = 0; k < depth; ++k) sum += x[r][k] * weights[k];
    StoreSome(sum, out[r], columns);
  }
}

template <typename T>
TFR_TARGET void Product(const T* const* x, const T* w, T* const* out, int64_t rows, int64_t depth, int64_t columns) {
  if (columns >= kLanes<T>) return WideProduct(x, w, out, rows, depth, columns);
  if (depth <= kLanes<T>) return ShortNarrowProduct(x, w, out, rows, depth, columns);
  static constexpr ByNumber<NarrowProducts<T>, kLanes<T> - 1> kProducts;
  for (int64_t r = 0; r < rows; ++r) kProducts.of[columns](x[r], w, out[r], depth);
}

#if defined(TFR_SHIFTS_LINES)
// Adds to the sums the whole vectors of x times those of kCount rows of the weight, which it loads by whole cache lines
// as AddShiftedWeightRow does. Returns how many numbers of each row it has added.
template <int kRows, int kCount, typename T>
TFR_INLINE int64_t AddShiftedProducts(const T* const* x, const T* w, int64_t depth, Vec<T> (*sums)[kCount]) {
  const T* from[kCount];
  Bits<T> lanes[kCount];
  Vec<T> lines[kCount];
  TFR_UNROLLED for (int i = 0; i < kCount; ++i) {
    const int64_t shift = NumbersIntoLine(w + i * depth);
    from[i] = w + i * depth - shift;
    lanes[i] = LaneNumbers<T>() + static_cast<int>(shift);
    lines[i] = Load(from[i]);
  }
  int64_t k = 0;
  for (; k + kLanes<T> <= depth; k += kLanes<T>) {
    Vec<T> numbers[kRows];
    TFR_UNROLLED for (int r = 0; r < kRows; ++r) numbers[r] = Load(x[r] + k);
    TFR_UNROLLED for (int i = 0; i < kCount; ++i) {
      Vec<T> next = Load(from[i] + k + kLanes<T>);
      TFR_KEEP_IN_REGISTER(next);
      const Vec<T> part = __builtin_shuffle(lines[i], next, lanes[i]);
      lines[i] = next;
      TFR_UNROLLED for (int r = 0; r < kRows; ++r) sums[r][i] += numbers[r] * part;
    }
  }
  return k;
}
#endif

// Does the same, but loads the vectors of the weight from where they lie.
template <int kRows, int kCount, typename T>
TFR_INLINE int64_t AddWholeVectors(const T* const* x, const T* w, int64_t depth, Vec<T> (*sums)[kCount]) {
  int64_t k = 0;
  for (; k + kLanes<T> <= depth; k += kLanes<T>) {
    Vec<T> parts[kCount];
    TFR_UNROLLED for (int i = 0; i < kCount; ++i) {
      parts[i] = Load(w + i * depth + k);
      TFR_KEEP_IN_REGISTER(parts[i]);
    }
    TFR_UNROLLED for (int r = 0; r < kRows; ++r) {
      Vec<T> part = Load(x[r] + k);
      TFR_KEEP_IN_REGISTER(part);
      TFR_UNROLLED for (int i = 0; i < kCount; ++i) sums[r][i] += part * parts[i];
    }
  }
  return k;
}

// Computes the scalar products of kRows rows of x with kCount rows of `w`, each as a vector of partial sums. The
// product of row r of x with row i of `w` goes to out[r * kLanes + i]. The rows have at least kLanes numbers.
template <int kRows, int kCount, bool kShifts, typename T>
TFR_INLINE void AddProducts(const T* const* x, const T* w, int64_t depth, Vec<T>* out) {
  Vec<T> sums[kRows][kCount] = {};
  int64_t k = 0;
#if defined(TFR_SHIFTS_LINES)
  if constexpr (kShifts) k = AddShiftedProducts<kRows, kCount>(x, w, depth, sums);
#endif
  if constexpr (!kShifts) k = AddWholeVectors<kRows, kCount>(x, w, depth, sums);
  if (k < depth) {
    // Adds the last kLanes numbers of each row, but for those that have been added already.
    const int64_t start = depth - kLanes<T>;
    const Bits<T> is_new = LaneNumbers<T>() >= static_cast<int>(k - start);
    TFR_UNROLLED for (int r = 0; r < kRows; ++r) {
      const Vec<T> last = is_new ? Load(x[r] + start) : All(T(0));
      TFR_UNROLLED for (int i = 0; i < kCount; ++i) {
        sums[r][i] += last * (is_new ? Load(w + i * depth + start) : All(T(0)));
      }
    }
  }
  TFR_UNROLLED for (int r = 0; r < kRows; ++r) {
    TFR_UNROLLED for (int i = 0; i < kCount; ++i) out[r * kLanes<T> + i] = sums[r][i];
  }
}

// Multiplies kRows rows of x with `count` rows of the weight, at most as many as a vector has lanes. With kShifts it
// reads the weight by whole cache lines, for which there must be a row of the weight before and one behind these.
template <int kRows, bool kShifts, typename T>
TFR_INLINE void TransposedTile(const T* const* x, const T* w, T* const* out, int64_t depth, int64_t column, int count) {
  constexpr int kMostAtOnce = kRows == 1 && !kShifts ? 8 : 4;
  constexpr int kAtOnce = kLanes<T> < kMostAtOnce ? kLanes<T> : kMostAtOnce;
  Vec<T> sums[kRows * kLanes<T>];
  for (int j = count; j < kLanes<T>; ++j) {
    TFR_UNROLLED for (int r = 0; r < kRows; ++r) sums[r * kLanes<T> + j] = Vec<T>{};
  }
  int i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    AddProducts<kRows, kAtOnce, kShifts>(x, w + (column + i) * depth, depth, sums + i);
  }
  for (; i < count; ++i) AddProducts<kRows, 1, kShifts>(x, w + (column + i) * depth, depth, sums + i);
  TFR_UNROLLED for (int r = 0; r < kRows; ++r) {
    const Vec<T> numbers = SumsOf<T>(sums + r * kLanes<T>);
    if (count == kLanes<T>) {
      Store(numbers, out[r] + column);
    } else {
      StoreSome(numbers, out[r] + column, count);
    }
  }
}

template <int kRows, typename T>
TFR_INLINE void TransposedRows(const T* const* x, const T* w, T* const* out, int64_t depth, int64_t columns,
                               int64_t column) {
  const int64_t left = columns - column;
  const int count = static_cast<int>(left < kLanes<T> ? left : kLanes<T>);
#if defined(TFR_SHIFTS_LINES)
  if constexpr (kRows <= 2) {
    const bool is_far = depth * columns * static_cast<int64_t>(sizeof(T)) > kBytesNearby;
    if (is_far && column > 0 && left > kLanes<T>) {
      return TransposedTile<kRows, true>(x, w, out, depth, column, kLanes<T>);
    }
  }
#endif
  TransposedTile<kRows, false>(x, w, out, depth, column, count);
}

// Multiplies one row with a weight that has kDepth numbers in a row, fewer than a vector has lanes, as where the
// gradient of a few classes becomes that of a node. Number by number: to bring such rows into vectors takes longer.
template <int kDepth, typename T>
TFR_TARGET void ShortProductTransposed(const T* x, const T* w, T* out, int64_t columns) {
  T numbers[kDepth];
  TFR_UNROLLED for (int k = 0; k < kDepth; ++k) numbers[k] = x[k];
  for (int64_t column = 0; column < columns; ++column) {
    T sum = 0;  // so that a sum of zeros is 0, not -0
    TFR_UNROLLED for (int k = 0; k < kDepth; ++k) sum += numbers[k] * w[column * kDepth + k];
    out[column] = sum;
  }
}

template <typename T>
struct ShortProductsTransposed {
  template <int kDepth>
  static constexpr auto Of() {
    return ShortProductTransposed<kDepth, T>;
  }
};

template <typename T>
TFR_TARGET void ProductTransposed(const T* const* x, const T* w, T* const* out, int64_t rows, int64_t depth,
                                  int64_t columns) {
  if (depth < kLanes<T>) {
    static constexpr ByNumber<ShortProductsTransposed<T>, kLanes<T> - 1> kProducts;
    for (int64_t r = 0; r < rows; ++r) kProducts.of[depth](x[r], w, out[r], columns);
    return;
  }
  constexpr int kRowsOfTile = TFR_VECTOR_BYTES == 64 ? 4 : 2;
  for (int64_t column = 0; column < columns; column += kLanes<T>) {
    int64_t r = 0;
    for (; r + kRowsOfTile <= rows; r += kRowsOfTile) {
      TransposedRows<kRowsOfTile>(x + r, w, out + r, depth, columns, column);
    }
    if constexpr (kRowsOfTile > 2) {
      if (rows - r == 3) TransposedRows<3>(x + r, w, out + r, depth, columns, column);
      if (rows - r == 2) TransposedRows<2>(x + r, w, out + r, depth, columns, column);
      if (rows - r > 1) continue;
    }
    if (r < rows) TransposedRows<1>(x + r, w, out + r, depth, columns, column);
  }
}
