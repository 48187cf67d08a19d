// The key-value command set in the drive model: keys and the lengths of values, without contents of values.
//
// Names, limits and status codes are those of the NVMe Key Value Command Set (rev 1.0c): store, retrieve, delete,
// exist, list; KML, VML. What the accelerator needs beyond that standard is a *vendor extension*, as KVAccel and
// KV-SSDs with iterators have it (K8, K15): batch store, iterate, bulk scan in chunks of 512 KiB, reset.
//
// Two more extensions are of this project alone, and a drive has them only if its preset says so: a retrieve from the
// middle of a value (namespaces.retrieve_offset), and a batch retrieve (namespaces.batch_retrieve_keys).
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "ssd/interface/command.h"

namespace spillway::ssd {

inline constexpr std::uint32_t kMaxKeyBytes = 16;  // NVMe-KV: the command itself contains the key
// Most bytes that one bulk scan or one iterate transfers. Source: KVAccel, V-E: the largest DMA of its board (K8)
inline constexpr std::uint32_t kScanChunkBytes = 512 * 1024;
// Most keys of a batch retrieve that a drive can offer: their list, of 24 bytes each, fits a page of 4 KiB.
inline constexpr std::uint32_t kMostBatchKeys = 128;
// In a run and in a scan, a pair follows the lengths of its key and of its value.
inline constexpr std::uint32_t kPairHeaderBytes = 8;

struct KvKey {
  std::array<std::uint8_t, kMaxKeyBytes> bytes{};  // zero after the key
  std::uint8_t size = 0;                           // 0: no key

  KvKey() = default;
  // REQUIRES: at most kMaxKeyBytes
  explicit KvKey(std::string_view text) : size(static_cast<std::uint8_t>(text.size())) {
    std::copy(text.begin(), text.end(), bytes.begin());
  }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), size}; }

  // By bytes; a key sorts before longer keys that begin with it.
  friend std::strong_ordering operator<=>(const KvKey& a, const KvKey& b) {
    const int order = std::memcmp(a.bytes.data(), b.bytes.data(), kMaxKeyBytes);
    return order != 0 ? order <=> 0 : a.size <=> b.size;
  }
  friend bool operator==(const KvKey& a, const KvKey& b) { return a.size == b.size && a.bytes == b.bytes; }
};

struct KvPair {
  KvKey key;
  std::uint32_t value_bytes = 0;

  std::uint64_t stored_bytes() const { return std::uint64_t{kPairHeaderBytes} + key.size + value_bytes; }
};

// A range of keys: from `begin` on, or after it; up to `end`, which is excluded (no key: to the last).
struct KvRange {
  KvKey begin;
  KvKey end;
  bool after_begin = false;

  bool reaches(const KvKey& key) const { return end.size == 0 || key < end; }
};

// Units of a key-value namespace that stores must leave to deletions, so that a full namespace can be emptied key by
// key.
constexpr std::uint64_t kv_reserve_units(std::uint64_t units) { return units / 64 + 2; }

enum class KvCondition : std::uint8_t { none, only_if_exists, only_if_not_exists };

// Vendor extension: a part of a value, as a batch retrieve asks for it.
struct KvPart {
  KvKey key;
  std::uint32_t offset_bytes = 0;  // where in the value it begins. Other than 0: only with namespaces.retrieve_offset
  std::uint32_t buffer_bytes = 0;  // the host's buffer for it
};

// How much of a value a retrieve returns: nothing if the offset is at its end or beyond it.
constexpr std::uint32_t part_bytes(std::uint32_t value_bytes, std::uint32_t offset_bytes, std::uint32_t buffer_bytes) {
  return offset_bytes < value_bytes ? std::min(value_bytes - offset_bytes, buffer_bytes) : 0;
}

// In the answer to a batch retrieve, each part follows its key's status and the length of the value.
inline constexpr std::uint32_t kPartHeaderBytes = 8;

// A command to a key-value namespace.
struct KvCommand {
  std::uint64_t tag = 0;
  Opcode op = Opcode::kv_store;
  std::uint8_t cause = 0;                     // < kHostCauses
  std::uint16_t queue = 0;                    // submission queue, shared with the block commands
  std::uint16_t kv_namespace = 0;             // < namespaces.count
  KvCondition condition = KvCondition::none;  // of a store
  KvPair pair;                                // store: both; retrieve, delete, exist: its key
  KvRange range;                   // list, iterate, bulk scan: answered from its first key on; reset: what is removed
  std::uint32_t buffer_bytes = 0;  // the host's buffer for a retrieve, list or iterate
  std::uint32_t offset_bytes = 0;  // vendor extension: a retrieve returns the value from here on
  std::vector<KvPair> pairs;       // batch store: stores all of them or none
  std::vector<KvPart> parts;       // batch retrieve; keys that do not exist have an answer of their own
};

}  // namespace spillway::ssd
