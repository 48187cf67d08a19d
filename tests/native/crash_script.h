// What one thread of a crash test writes: random operations on keys of its own, the same again for the same seed, and
// the state that each of them leads to. So whoever knows how many of them there were knows what a database holds.
#pragma once

#include <rocksdb/merge_operator.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace spillway::crash {

// A merge appends, with a comma between.
std::shared_ptr<rocksdb::MergeOperator> appending_merge();

struct Key {
  unsigned family = 0;  // 0 or 1
  std::string name;
  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): where it compares with 0
};
using Contents = std::map<Key, std::string>;

struct Change {
  enum class Kind : std::uint8_t { put, remove, single_remove, merge, remove_range };
  Kind kind = Kind::put;
  Key key{};
  std::string value{};  // or the range's end, excluded
};

// One write: several changes are one batch; or one ingestion of external files, of puts alone.
struct Operation {
  std::vector<Change> changes{};
  bool sync = false;
  bool is_ingestion = false;  // then it is durable when it is acknowledged: `sync` is true
};

struct Kinds {
  bool single_remove = true;
  bool merge = true;
  bool remove_range = true;
  bool batches = true;
  bool ingestions = false;
  double sync_share = 0.15;
  std::size_t value_bytes = 400;  // at most
};

class Script {
 public:
  // Goes on from `base`, which holds keys of this thread only.
  Script(std::uint64_t seed, unsigned thread, const Kinds& kinds, Contents base)
      : random_(seed * 1000003 + thread), thread_(thread), kinds_(kinds), state_(std::move(base)) {}

  Operation next();
  // After everything that next() has returned.
  const Contents& state() const { return state_; }
  // Before the database's thread has a key: which keys there are of this thread, in all families.
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
