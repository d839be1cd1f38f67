// Numbers that name things, a type for each kind of thing: a slot cannot be taken for a port by mistake.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_IDS_H_
#define TENSORFLOW_RECURSION_CC_BASE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensorflow_recursion {

// The id of nothing: `op.slot == kNone`, `return kNone`.
struct None {
  constexpr operator uint32_t() const { return 0xffffffff; }
};
inline constexpr None kNone;

// A 32-bit number that names one of the things that `Tag` stands for, or kNone. A number becomes an id only where the
// code says so; an id is a number again wherever one is needed, as to index a table. So `port = slot` does not compile,
// and neither does comparing the two. An id costs no more than a uint32_t.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr Id(None) {}
  template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer>>>
  constexpr explicit Id(Integer value) : value_(static_cast<uint32_t>(value)) {}

  constexpr operator uint32_t() const { return value_; }

  friend constexpr bool operator==(Id a, Id b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Id a, Id b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Id a, Id b) { return a.value_ < b.value_; }
  friend constexpr bool operator==(Id a, None) { return a.value_ == kNone; }
  friend constexpr bool operator!=(Id a, None) { return a.value_ != kNone; }

 private:
  uint32_t value_ = None();
};

template <typename A, typename B, typename = std::enable_if_t<!std::is_same_v<A, B>>>
constexpr bool operator==(Id<A>, Id<B>) = delete;
template <typename A, typename B, typename = std::enable_if_t<!std::is_same_v<A, B>>>
constexpr bool operator!=(Id<A>, Id<B>) = delete;

// These name things of a whole graph or program: a node of the flow graph, which is a future operator; a region, which
// is the root or the body of a function or a loop; a tensor that is known when the program is built; a call site.
using NodeId = Id<struct NodeTag>;
using RegionId = Id<struct RegionTag>;
using ConstantId = Id<struct ConstantTag>;
using CallSiteId = Id<struct CallSiteTag>;

// These name things within one region: an operator, an output of an operator, a place in the region's frames where an
// input waits.
using OpId = Id<struct OpTag>;
using PortId = Id<struct PortTag>;
using SlotId = Id<struct SlotTag>;

// A vector that only ids of one kind index.
template <typename IdType, typename T>
class IdVector {
 public:
  // The ids of the elements that there are when ids() is called. So elements may be added while a loop visits these.
  class Ids {
   public:
    // What a range-based for loop over the ids needs.
    class iterator {
     public:
      explicit iterator(size_t at) : at_(at) {}
      IdType operator*() const { return IdType(at_); }
      iterator& operator++() {
        ++at_;
        return *this;
      }
      bool operator!=(const iterator& other) const { return at_ != other.at_; }

     private:
      size_t at_;
    };
    explicit Ids(size_t size) : size_(size) {}
    iterator begin() const { return iterator(0); }
    iterator end() const { return iterator(size_); }

   private:
    size_t size_;
  };

  IdVector() = default;
  explicit IdVector(size_t size, const T& value = T()) : items_(size, value) {}

  // Adds an element; returns its id.
  IdType Add(T item) {
    items_.push_back(std::move(item));
    return IdType(items_.size() - 1);
  }
  decltype(auto) operator[](IdType id) { return items_[static_cast<uint32_t>(id)]; }
  decltype(auto) operator[](IdType id) const { return items_[static_cast<uint32_t>(id)]; }
  template <typename Other>
  void operator[](Other) const = delete;

  Ids ids() const { return Ids(items_.size()); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(size_t size) { items_.resize(size); }
  void assign(size_t size, const T& value) { items_.assign(size, value); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_IDS_H_
