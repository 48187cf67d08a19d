// The operations of one thread of a crash test: random operations on its own keys, determined by the seed, and the
// state after each of them. So the number of operations determines the database's contents.
#pragma once

#include <rocksdb/merge_operator.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace spillway::crash {

// A merge appends the operand after a comma.
std::shared_ptr<rocksdb::MergeOperator> appending_merge();

struct Key {
  unsigned family = 0;  // 0 or 1
  std::string name;
  auto operator<=>(const Key&) const = default;  // compared with 0
};
using Contents = std::map<Key, std::string>;

struct Change {
  enum class Kind : std::uint8_t { put, remove, single_remove, merge, remove_range };
  Kind kind = Kind::put;
  Key key{};
  std::string value{};  // or the range's end, which is excluded
};

// One write: several changes are one batch; or one ingestion of external files, which contain only puts.
struct Operation {
  std::vector<Change> changes{};
  bool sync = false;
  bool is_ingestion = false;  // durable when it is acknowledged: `sync` is true
};

struct Kinds {
  bool single_remove = true;
  bool merge = true;
  bool remove_range = true;
  bool batches = true;
  bool other_family = true;
  bool ingestions = false;
  double sync_share = 0.15;
  std::size_t value_bytes = 400;  // upper limit
};

class Script {
 public:
  // Continues from `base`, which has only keys of this thread.
  Script(std::uint64_t seed, unsigned thread, const Kinds& kinds, Contents base)
      : random_(seed * 1000003 + thread), thread_(thread), kinds_(kinds), state_(std::move(base)) {}

  Operation next();
  // The state after everything that next() has returned.
  const Contents& state() const { return state_; }
  // Whether the key, in either family, belongs to this thread.
  static bool owns(unsigned thread, const Key& key);
  Key any_key();

 private:
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }
  std::string any_value();
  Change any_change();
  Operation any_ingestion();
  void apply(const Change& change);

  std::mt19937_64 random_;
  const unsigned thread_;
  const Kinds kinds_;
  Contents state_;
  std::uint64_t values_ = 0;
};

}  // namespace spillway::crash
