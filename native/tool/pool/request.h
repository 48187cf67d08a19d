// The request of `bufferpool`, read and checked for what can be seen without the target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "pool/buffer_pool.h"
#include "pool/replay.h"
#include "pool/trace.h"
#include "tool/probe/request.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

struct BufferpoolRequest {
  ProbeRequest target;  // `seed` and `target`, as `probe` has them
  pool::PoolSpec pool;  // but for `pages`, which the target has a say in
  std::string policy;
  pool::SyntheticSpec workload;  // `pages` of 0: as many as the target has
  std::string trace;             // the file, where the workload is one
  std::optional<std::uint64_t> warmup_operations;
  std::optional<std::uint64_t> operations;
};

Result<BufferpoolRequest> read_bufferpool_request(const Json& json);

}  // namespace spillway::tool
