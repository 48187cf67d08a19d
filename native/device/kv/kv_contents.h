// The contents of one key-value namespace: what the drive model, which knows keys and lengths only, does not keep.
//
// A file mapped into memory and shared, so that what was written stays when its process is killed. It is a log: records
// of one or more pairs, each there whole or not at all (its last word is written last), in segments that are used again
// when nothing in them is alive. A pair that is deleted or replaced is marked where it lies. So the file is its own
// index: opening it reads it once and finds what was stored, the newest version of each key, nothing twice.
//
// Pairs of a command that is in flight lie in it, too, without being there yet: the process that handed it over may be
// killed, and a drive goes on with what it was handed.
//
// A loss of power of the machine that emulates is not what this survives: the drive that it plays has power-loss
// protection, and this file is that drive's flash (docs/BIAS.md).
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
  // `path`: made when it is not there; "" keeps everything in memory, and nothing stays. `capacity_bytes`: pairs that
  // it must hold, with their headers; `largest_record`: the most that put() is given, with theirs.
  // bad_input: the file is another's, in use, or damaged. io_error: the host's file system.
  static Result<std::unique_ptr<KvContents>> open(const std::string& path, std::uint64_t capacity_bytes,
                                                  std::uint64_t largest_record);
  ~KvContents();
  KvContents(const KvContents&) = delete;
  KvContents& operator=(const KvContents&) = delete;

  // All of them or none; of two with one key the later counts. io_error: the host has no space, and nothing changed.
  // REQUIRES: at most largest_record, and no more alive than capacity_bytes
  Status put(std::span<const KvView> pairs);
  // The pairs of a command in flight: in the file, and not there until settle() says that they are, as put() would have
  // done it; or that they never will be. Returns where. Fails and REQUIRES as put().
  Result<std::uint64_t> hand_over(std::span<const KvView> pairs);
  void settle(std::uint64_t where, bool takes_effect);
  // The same for all that a process left in flight when it ended, in the order in which they were handed over.
  // `takes_effect` is told how many bytes of pairs, with their headers. REQUIRES: nothing was handed over since open()
  void settle_left_over(const std::function<bool(std::uint64_t bytes)>& takes_effect);
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
  // As the drive counts them: headers, keys, values. To be asked at any time.
  std::uint64_t stored_bytes() const { return stored_bytes_.load(std::memory_order_acquire); }
  // Valid until the next change.
  std::string_view value(const Place& place) const;

 private:
  struct Segment {
    std::uint64_t epoch = 0;      // 0: free
    std::uint64_t tail = 0;       // where the next record goes
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
  Status make_room(std::uint64_t bytes);
  Status open_segment();
  Status clean();
  Status take_space(std::uint64_t begin, std::uint64_t end);
  void give_back_free();
  Result<std::uint64_t> append(std::span<const KvView> pairs, std::uint64_t state);
  Result<std::uint64_t> append_here(std::span<const KvView> pairs, std::uint64_t state, std::uint64_t bytes);
  void take_effect(std::uint64_t record);
  void take_in(const ssd::KvKey& key, const Place& place);
  void bury(const ssd::KvKey& key, const Place& place);
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
  std::size_t open_ = 0;  // the segment that is appended to
  bool has_open_ = false;
  std::uint64_t taken_until_ = 0;  // in the open segment: the host has space up to here
  std::uint64_t next_sequence_ = 1;
  Index index_;
  std::atomic<std::uint64_t> stored_bytes_ = 0;
  std::vector<std::uint64_t> left_over_;  // records that the process before had in flight
};

}  // namespace spillway::device
