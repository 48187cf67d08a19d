// The request of `bufferpool`, read and checked as far as that is possible without the target.
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
  ProbeRequest target;  // `seed` and `target`, as in a request of `probe`
  pool::PoolSpec pool;  // without `pages`, which depends on the target
  std::string policy;
  pool::SyntheticSpec workload;  // `pages` = 0: as many as the target has
  std::string trace;             // the trace file, if the workload is a trace
  std::optional<std::uint64_t> warmup_operations;
  std::optional<std::uint64_t> operations;
};

Result<BufferpoolRequest> read_bufferpool_request(const Json& json);

}  // namespace spillway::tool
