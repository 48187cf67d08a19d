// What some generations hold, as one sorted run of newest versions that is brought back in parts by ranges of keys.
//
// A key that was overwritten in several generations is there once. Parts do not overlap, so RocksDB can compact each by
// itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spill/live/column_families.h"
#include "spill/live/generation.h"

namespace spillway::spill {

// Whether a newer version of the entry's key is in another generation, durably, so that this one is not needed.
using IsSuperseded = std::function<bool(const Entry& entry)>;

struct KeyRange {
  std::string begin;
  std::string end;
};

// What goes into one file.
struct RunPart {
  std::uint32_t column_family = 0;
  std::span<const Entry* const> entries;  // in the order of keys, one for each
  std::vector<KeyRange> deleted;          // in that order; they do not overlap. Entries in them are newer
};

// Parts of that part, in order, whose sorted files have about so many bytes each. REQUIRES: nothing is deleted in it.
std::vector<RunPart> split(const RunPart& part, std::uint64_t bytes);

// Not thread-safe.
class MergedRun {
 public:
  // Of entries up to `up_to`. Left out are those of dropped families, those that `is_superseded` names, and those that
  // a newer range tombstone of these generations covers. `families` and the generations outlive it.
  MergedRun(std::span<const std::shared_ptr<Generation>> generations, Sequence up_to, const ColumnFamilies& families,
            const IsSuperseded& is_superseded);

  // The next part of each family, families in order of their ids, so that the sorted files have at most `most_bytes`
  // together. Exceptions: an entry that is larger, and range tombstones, of which each part has those of its range.
  // Empty: nothing is left.
  std::vector<RunPart> next(std::uint64_t most_bytes) const;
  // What next(most_bytes) has returned was brought back.
  void advance(std::uint64_t most_bytes);

  bool is_empty() const { return families_.empty(); }
  // What is left, if it is of one family and has no range tombstones: the family, its first and its last key.
  struct Plain {
    std::uint32_t column_family = 0;
    KeyRange range;  // both included
  };
  std::optional<Plain> plain_range() const;
  // Most bytes of the sorted files of all that is left.
  std::uint64_t bytes_left() const { return bytes_left_; }
  // Of those, the range tombstones'.
  std::uint64_t tombstone_bytes() const;

 private:
  struct OfFamily {
    std::vector<const Entry*> entries;
    std::size_t next = 0;  // of the entries
    std::vector<KeyRange> deleted;
  };
  struct End {  // of a part
    std::size_t entries = 0;
    std::uint64_t bytes = 0;
  };
  static End end_of_part(const OfFamily& family, std::uint64_t most_bytes);
  // The ranges before the first key that is not in the part, cut there; and what is left of all of them.
  void split_deleted(std::uint32_t id, const OfFamily& family, std::size_t end, std::vector<KeyRange>* before,
                     std::vector<KeyRange>* rest) const;

  const ColumnFamilies* all_families_;
  std::map<std::uint32_t, OfFamily> families_;  // those of which something is left
  std::uint64_t bytes_left_ = 0;
};

}  // namespace spillway::spill
