// An operation on one key, in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "spill/live/column_families.h"
#include "spill/store/record.h"
#include "spill/store/store.h"

namespace spillway::spill {

class Generation;

enum class Kind : std::uint8_t { put, remove };

// Where a value lies: `length` bytes from byte `from` of the record at `offset`.
struct Location {
  std::uint64_t offset = 0;
  std::uint32_t from = 0;
  std::uint32_t length = 0;
};

// Lives in its generation's list of entries, its key right behind it. A newer version of its key may take its place
// (KeyIndex::write).
struct Entry {
  const Generation* generation = nullptr;
  Sequence sequence = 0;
  Location value;  // of a put
  std::uint32_t column_family = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_checksum = 0;  // crc32c of a put's value: every read of it is held against this
  Kind kind = Kind::put;

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }
  // With its key, and up to where another may begin.
  std::size_t bytes() const {
    return (sizeof(Entry) + key_bytes + alignof(Entry) - 1) / alignof(Entry) * alignof(Entry);
  }
};
static_assert(sizeof(Entry) == 48, "the bytes of a key in memory count on it");

// The key index has room for addresses of so many bits. Linux gives a process no others on x86-64 and on AArch64,
// unless it asks for them. Sources: Documentation/arch/x86/x86_64/5level-paging.rst,
// Documentation/arch/arm64/memory.rst.
inline constexpr unsigned kEntryAddressBits = 48;

// By column family, then the family's comparator, then the newest first.
class EntryOrder {
 public:
  explicit EntryOrder(const ColumnFamilies& families) : families_(&families) {}
  bool operator()(const Entry* a, const Entry* b) const { return before(*a, b->column_family, b->key(), b->sequence); }
  // Whether `entry` comes before the place of that version of that key.
  bool before(const Entry& entry, std::uint32_t column_family, std::string_view key, Sequence sequence) const;

 private:
  const ColumnFamilies* families_;
};

// Entries sorted by EntryOrder; immutable.
using SortedRun = std::vector<const Entry*>;

}  // namespace spillway::spill
