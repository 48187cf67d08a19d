// Reads of parts of records from a key-value namespace: answered from memory where the drive does not have the pair
// yet.
//
// A read of a pair begins at its record's frame, which says how long the record is, or else at the bytes that are
// wanted. What precedes that in the pair is read too, unless the drive has a retrieve with an offset. A drive with a
// batch retrieve is given several reads in a command. Both are vendor extensions (device/kv/kv_namespace.h).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "spill/store/kv/kv_append_window.h"
#include "spill/store/kv/kv_commands.h"
#include "spill/store/store.h"

namespace spillway::spill {

class KvReads final : public ReadsInFlight {
 public:
  // REQUIRES: both outlive this
  KvReads(const KvCommands& commands, const KvAppendWindow& window, std::uint32_t pair_bytes,
          std::span<ReadRequest> requests);
  void wait() override;

 private:
  // The read of one pair, which has a part of a record.
  struct PairRead {
    std::size_t request = 0;
    std::uint64_t into = 0;        // where in the answer
    std::uint32_t begin = 0;       // of what is wanted, in the pair
    std::uint32_t end = 0;         // behind it
    std::uint32_t header = kNone;  // where in the pair the record begins
    std::uint32_t from = 0;        // where in the pair the read begins
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  };

  void plan(const KvAppendWindow& window, std::uint32_t pair_bytes, std::size_t index);
  rocksdb::Status submit_each();
  rocksdb::Status submit_batches();
  void wait_for_batches();
  void take(const PairRead& one, std::string_view bytes);

  KvCommands::Lease lease_;
  const bool has_offset_;
  const std::size_t keys_a_command_;  // 0: no batch retrieve
  const std::span<ReadRequest> requests_;
  std::vector<PairRead> pairs_;        // on their way; their keys are the lease's
  std::vector<std::size_t> commands_;  // of batches: the first pair of each
};

}  // namespace spillway::spill
