#include "crash_script.h"

#include <array>
#include <cstdio>
#include <utility>

namespace spillway::crash {

namespace {

using Kind = Change::Kind;

// Few keys, so that each is overwritten and deleted often, in the same log and in others.
constexpr std::uint64_t kPlainKeys = 24;
constexpr std::uint64_t kOtherFamilyKeys = 10;
constexpr std::uint64_t kSingleKeys = 8;  // put once, then deleted once
constexpr std::uint64_t kMergeKeys = 6;
constexpr std::uint64_t kOperationsAnIngestion = 40;

Key key_of(unsigned thread, char sort, std::uint64_t number) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%u/%c%02u", thread, sort, static_cast<unsigned>(number));
  return {.family = sort == 'q' ? 1U : 0U, .name = name.data()};
}

class AppendingMerge final : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "spillway-crash-append"; }
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& value, std::string* result,
             rocksdb::Logger*) const override {
    *result = existing != nullptr ? existing->ToString() + "," + value.ToString() : value.ToString();
    return true;
  }
};

}  // namespace

std::shared_ptr<rocksdb::MergeOperator> appending_merge() { return std::make_shared<AppendingMerge>(); }

bool Script::owns(unsigned thread, const Key& key) { return key.name.starts_with(std::to_string(thread) + "/"); }

Key Script::any_key() {
  const std::uint64_t number = below(kPlainKeys + (kinds_.other_family ? kOtherFamilyKeys : 0));
  return number < kPlainKeys ? key_of(thread_, 'p', number) : key_of(thread_, 'q', number - kPlainKeys);
}

// No value is written twice, so an older version can be identified.
std::string Script::any_value() {
  std::string value = std::to_string(random_() % 1000000007) + "." + std::to_string(values_++) + ".";
  value.append(below(kinds_.value_bytes), static_cast<char>('a' + below(26)));
  return value;
}

Change Script::any_change() {
  const std::uint64_t choice = below(100);
  if (choice < 10 && kinds_.single_remove) {
    const Key key = key_of(thread_, 's', below(kSingleKeys));
    if (state_.contains(key)) return {.kind = Kind::single_remove, .key = key};
    return {.kind = Kind::put, .key = key, .value = any_value()};
  }
  if (choice < 20 && kinds_.merge) {
    const Key key = key_of(thread_, 'm', below(kMergeKeys));
    const auto found = state_.find(key);
    const bool long_enough = found != state_.end() && found->second.size() > 4 * kinds_.value_bytes;
    if (long_enough && below(2) == 0) return {.kind = Kind::remove, .key = key};
    return {.kind = long_enough ? Kind::put : Kind::merge, .key = key, .value = any_value()};
  }
  if (choice < 22 && kinds_.remove_range) {
    const std::uint64_t begin = below(kPlainKeys - 4);
    return {.kind = Kind::remove_range,
            .key = key_of(thread_, 'p', begin),
            .value = key_of(thread_, 'p', begin + 1 + below(4)).name};
  }
  if (choice < 40) return {.kind = Kind::remove, .key = any_key()};
  return {.kind = Kind::put, .key = any_key(), .value = any_value()};
}

Operation Script::any_ingestion() {
  Operation operation{.sync = true, .is_ingestion = true};
  for (std::uint64_t i = 1 + below(4); i > 0; --i) {
    operation.changes.push_back({.kind = Kind::put, .key = any_key(), .value = any_value()});
    apply(operation.changes.back());
  }
  return operation;
}

Operation Script::next() {
  if (kinds_.ingestions && below(kOperationsAnIngestion) == 0) return any_ingestion();
  Operation operation;
  const std::uint64_t count = kinds_.batches && below(3) == 0 ? 2 + below(5) : 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    operation.changes.push_back(any_change());
    apply(operation.changes.back());
  }
  operation.sync = static_cast<double>(below(1000)) < kinds_.sync_share * 1000;
  return operation;
}

void Script::apply(const Change& change) {
  switch (change.kind) {
    case Kind::put:
      state_[change.key] = change.value;
      break;
    case Kind::remove:
    case Kind::single_remove:
      state_.erase(change.key);
      break;
    case Kind::merge:
      if (std::string& value = state_[change.key]; value.empty()) {
        value = change.value;
      } else {
        value += "," + change.value;
      }
      break;
    case Kind::remove_range:
      state_.erase(state_.lower_bound(change.key),
                   state_.lower_bound({.family = change.key.family, .name = change.value}));
      break;
  }
}

}  // namespace spillway::crash
