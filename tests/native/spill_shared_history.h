// The operations of threads on shared keys, and whether they allow what a read finds.
//
// A value is a list: an operation puts its number, appends it (a merge), or removes the list. Operations that do not
// overlap in time keep their order. So each list determines the put or deletion with which it begins, and from there on
// no operation may be missing, duplicated or out of order. These checks are necessary for linearizability, not
// sufficient.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace spillway::clients {

class SharedHistory {
 public:
  enum class Kind : std::uint8_t { put, merge, remove };
  using Id = std::uint64_t;
  using Tick = std::uint64_t;

  explicit SharedHistory(std::size_t keys) : keys_(keys) {}

  // Begins an operation. Its number is what it puts or appends.
  Id begin(std::size_t key, Kind kind) {
    const std::lock_guard lock(mutex_);
    operations_.push_back({kind, key, ++clock_});
    keys_[key].push_back(operations_.size());
    return operations_.size();
  }
  void end(Id id) {  // it was acknowledged
    const std::lock_guard lock(mutex_);
    operations_[id - 1].end = ++clock_;
  }
  Tick now() {
    const std::lock_guard lock(mutex_);
    return ++clock_;
  }

  // What a read found for one key; none if it found nothing.
  struct Seen {
    std::size_t key = 0;
    std::optional<std::string> value;
  };

  // Checks whether a read that began at that tick and found these keys in one state could find them. Empty if it could,
  // else the reason why not.
  std::string judge(const std::vector<Seen>& all, Tick read_began) {
    const std::lock_guard lock(mutex_);
    // What was acknowledged before the start of a visible operation must be visible, too.
    Tick settled = read_began;
    std::vector<std::vector<Id>> lists;
    for (const Seen& one : all) {
      lists.push_back(list_of(one.value));
      for (const Id id : lists.back()) {
        if (id == 0 || id > operations_.size() || operations_[id - 1].key != one.key) {
          return "key " + std::to_string(one.key) + " has what was never written to it: " + one.value.value_or("");
        }
        settled = std::max(settled, operations_[id - 1].begin);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string why = judge_list(all[i].key, lists[i], settled);
      if (!why.empty()) {
        return "key " + std::to_string(all[i].key) + " is " + all[i].value.value_or("not there") + ": " + why;
      }
    }
    return {};
  }

 private:
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();
  struct Operation {
    Kind kind = Kind::put;
    std::size_t key = 0;
    Tick begin = 0;
    Tick end = kNever;
  };

  static std::vector<Id> list_of(const std::optional<std::string>& value) {
    std::vector<Id> list;
    std::istringstream text(value.value_or(""));
    for (std::string one; std::getline(text, one, ',');) list.push_back(std::strtoull(one.c_str(), nullptr, 10));
    return list;
  }

  // The list starts with a put, else with a deletion or the empty key. Only the order determines which one.
  std::string judge_list(std::size_t key, std::vector<Id> list, Tick settled) const {
    std::vector<Operation> starts;
    if (!list.empty() && operations_[list.front() - 1].kind == Kind::put) {
      starts.push_back(operations_[list.front() - 1]);
      list.erase(list.begin());
    } else {
      starts.push_back({Kind::remove, key, 0, 0});
      for (const Id id : keys_[key]) {
        if (operations_[id - 1].kind == Kind::remove) starts.push_back(operations_[id - 1]);
      }
    }
    std::string why;
    for (const Operation& start : starts) {
      why = judge_from(start, key, list, settled);
      if (why.empty()) break;
    }
    return why;
  }

  std::string judge_from(const Operation& start, std::size_t key, const std::vector<Id>& list, Tick settled) const {
    Tick latest_begin = start.begin;
    for (const Id id : list) {
      const Operation& one = operations_[id - 1];
      if (one.kind != Kind::merge) return std::to_string(id) + " is no merge";
      if (std::count(list.begin(), list.end(), id) != 1) return std::to_string(id) + " is there twice";
      if (one.end < latest_begin) return std::to_string(id) + " comes after what was written later";
      latest_begin = std::max(latest_begin, one.begin);
    }
    for (const Id id : keys_[key]) {
      const Operation& one = operations_[id - 1];
      if (one.end >= settled || one.begin <= start.end) continue;  // it need not be visible
      if (one.kind != Kind::merge) return std::to_string(id) + " was acknowledged later and is not there";
      if (std::find(list.begin(), list.end(), id) == list.end()) return std::to_string(id) + " is lost";
    }
    return {};
  }

  std::mutex mutex_;
  Tick clock_ = 0;
  std::vector<Operation> operations_;  // by number, from 1 on
  std::vector<std::vector<Id>> keys_;
};

}  // namespace spillway::clients
