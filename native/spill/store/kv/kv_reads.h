// Reads of parts of records from a key-value namespace: answered from memory where the drive does not have the pair
// yet.
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
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  };

  void plan(const KvAppendWindow& window, std::uint32_t pair_bytes, std::size_t index);
  static void take(ReadRequest& request, const PairRead& one, std::string_view bytes);

  KvCommands::Lease lease_;
  const std::span<ReadRequest> requests_;
  std::vector<PairRead> pairs_;  // on their way; their keys are the lease's
};

}  // namespace spillway::spill
