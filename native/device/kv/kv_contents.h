// The contents of one key-value namespace. The drive model has only keys and lengths.
//
// The contents are a file that is mapped shared, so they survive a kill of the process. The file is a log of records of
// one or more pairs. A record is complete or absent, because its state word is written last. Records are in segments,
// which are reused when no pair in them is live. A deleted or replaced pair is flagged dead in place, so one scan at
// opening finds the newest version of each key.
//
// Pairs of commands in flight are staged in the file: if the process is killed, the drive still completes what was
// submitted.
//
// The contents do not survive a loss of power of the emulating machine. The emulated drive has power-loss protection,
// and this file represents its flash (docs/BIAS.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ssd/interface/kv_command.h"

namespace spillway::device {

struct KvView {
  std::string_view key;
  std::string_view value;
};

// Not thread-safe: its namespace's lock guards it.
class KvContents {
 public:
  // `path`: created if missing; "": in memory only. `capacity_bytes`: the most that all pairs take with their headers.
  // `largest_record`: the most that the pairs of one put() take. bad_input: the file belongs to another namespace, is
  // in use, or damaged. io_error: the host's file system.
  static Result<std::unique_ptr<KvContents>> open(const std::string& path, std::uint64_t capacity_bytes,
                                                  std::uint64_t largest_record);
  ~KvContents();
  KvContents(const KvContents&) = delete;
  KvContents& operator=(const KvContents&) = delete;

  // Stores all of them or none; of two with one key the later one. io_error: the host has no space, and nothing
  // changed.
  // REQUIRES: at most largest_record, and at most capacity_bytes live
  Status put(std::span<const KvView> pairs);
  // Stages the pairs of a command in flight. settle() with the returned offset makes them take effect as put() does, or
  // drops them. Errors and requirements are those of put().
  Result<std::uint64_t> stage(std::span<const KvView> pairs);
  void settle(std::uint64_t where, bool takes_effect);
  // Settles what the previous process left in flight, in the order of staging. `takes_effect` is passed the bytes of
  // the pairs with their headers. REQUIRES: nothing was staged since open()
  void settle_leftovers(const std::function<bool(std::uint64_t bytes)>& takes_effect);
  void remove(std::string_view key);
  void remove_range(const ssd::KvRange& range);

  struct Place {
    std::uint64_t offset = 0;  // of the pair's header in the file
    std::uint32_t value_bytes = 0;
  };
  using Index = std::map<ssd::KvKey, Place>;
  const Index& index() const { return index_; }
  Index::const_iterator first_of(const ssd::KvRange& range) const {
    return range.after_begin ? index_.upper_bound(range.begin) : index_.lower_bound(range.begin);
  }
  // Bytes of headers, keys and values, as the drive counts them. Thread-safe.
  std::uint64_t stored_bytes() const { return stored_bytes_.load(std::memory_order_acquire); }
  // Valid until the next change.
  std::string_view value(const Place& place) const;

 private:
  struct Segment {
    std::uint64_t epoch = 0;      // 0: free
    std::uint64_t tail = 0;       // the offset of the next record
    std::uint64_t live = 0;       // bytes of pairs that are the newest of their key
    std::uint64_t in_flight = 0;  // records that are not settled
  };
  struct Version {
    std::uint64_t sequence = 0;
    std::uint32_t place = 0;  // in its record
  };
  KvContents() = default;

  Status map_file(const std::string& path, std::uint64_t capacity_bytes, std::uint64_t largest_record);
  Status recover(const std::string& path);
  bool recover_segment(std::size_t segment, std::map<ssd::KvKey, Version>& versions);
  Status ensure_room(std::uint64_t bytes);
  Status open_segment();
  Status clean();
  Status allocate_host_space(std::uint64_t begin, std::uint64_t end);
  void release_free_segments();
  Result<std::uint64_t> append(std::span<const KvView> pairs, std::uint64_t state);
  Result<std::uint64_t> append_here(std::span<const KvView> pairs, std::uint64_t state, std::uint64_t bytes);
  void take_effect(std::uint64_t record);
  void index_newest(const ssd::KvKey& key, const Place& place);
  void invalidate(const ssd::KvKey& key, const Place& place);
  void free_if_dead(std::size_t segment);
  std::size_t segment_of(std::uint64_t offset) const;
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  int descriptor_ = -1;
  unsigned char* base_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t segment_bytes_ = 0;
  std::vector<Segment> segments_;
  std::size_t open_ = 0;  // the segment to which records are appended
  bool has_open_ = false;
  std::uint64_t taken_until_ = 0;  // in the open segment: the host has allocated the file up to here
  std::uint64_t next_sequence_ = 1;
  Index index_;
  std::atomic<std::uint64_t> stored_bytes_ = 0;
  std::vector<std::uint64_t> left_over_;  // records that the previous process had in flight
};

}  // namespace spillway::device
