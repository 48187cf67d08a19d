// Pairs that the drive does not have yet, in memory that outlives a killed process: slots of a mapped file.
//
//   head   magic 16 bytes | pair bytes u32 | slots u32 | from byte 1024: KvDurable  (a page)
//   slot   state u64 | generation u64 | offset u64 | follows: generation u64, offset u64 | 1: of one record u64 |
//          16 bytes | the pair's bytes
//
// The state word has the number of bytes that are there, and the CRC-32C of them and of their position. It is written
// last, so a process may be killed between any two instructions. A loss of power of the machine leaves pages of any
// age, but none from before the slots were cleared, which is durable before one is filled. So a slot whose checksum
// does not match is empty, and a pair that has an earlier, shorter state is not followed by one that states its end.
//
// Not thread-safe, except for bytes that a state word covers, which may be read at any time.
#pragma once

#include <rocksdb/status.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spill/store/kv/kv_durable.h"
#include "spill/store/kv/kv_pairs.h"

namespace spillway::spill {

class KvStaging {
 public:
  struct Sizes {
    std::uint32_t pair_bytes = 0;
    std::uint32_t slots = 0;
  };
  // Those of the staging that is there, if one of this version is, whole.
  static std::optional<Sizes> find(const std::string& path);
  // `path`: made when it is not there; "": in memory, and gone with this.
  // InvalidArgument: the file is another's. IOError: the host's file system.
  static rocksdb::Status open(const std::string& path, std::uint32_t pair_bytes, std::uint32_t slots,
                              std::unique_ptr<KvStaging>* staging);
  ~KvStaging();
  KvStaging(const KvStaging&) = delete;
  KvStaging& operator=(const KvStaging&) = delete;

  struct Left {
    Position position;
    Position follows;
    std::string_view bytes;
  };
  // What the process before this one left, in order. The drive may have some of it.
  std::vector<Left> left() const;
  // What the head says of the drive, which clear() leaves alone.
  KvDurable& durable() { return *durable_; }
  // Makes the head durable, or all of it.
  rocksdb::Status sync_head();
  rocksdb::Status sync();
  // Forgets all that is in the slots, durably. To be called before the first begin().
  rocksdb::Status clear();

  std::uint32_t slots() const { return slots_; }
  // What was in the slot is gone. `follows`: where the last whole record before the pair ends; nowhere: the drive has
  // all of those. `of_one_record`: the pair is filled by one grow().
  void begin(std::uint32_t index, Position position, Position follows, bool of_one_record);
  // Room for the pair's bytes. Only those behind what it has grown to may be written.
  char* bytes(std::uint32_t index) const;
  // There are `bytes` of them now; what is new is one whole record, or all of the pair. Without this they are gone with
  // the process.
  void grow(std::uint32_t index, std::uint32_t bytes);

 private:
  struct Head;
  struct Slot;

  KvStaging(std::uint32_t pair_bytes, std::uint32_t slots);
  rocksdb::Status map_file(const std::string& path);
  Head& head() const;
  Slot& slot(std::uint32_t index) const;
  bool is_whole(std::uint32_t index) const;
  std::uint32_t checksum(const Slot& of, std::uint32_t before, std::string_view bytes) const;

  const std::uint32_t pair_bytes_;
  const std::uint32_t slots_;
  const std::uint64_t slot_bytes_;
  const std::uint64_t size_;
  char* base_ = nullptr;
  int descriptor_ = -1;
  std::optional<KvDurable> durable_;
};

}  // namespace spillway::spill
