#include "tool/pool/request.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "tool/protocol/fields.h"

namespace spillway::tool {
namespace {

using pool::Pattern;

constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;
constexpr std::uint32_t kMostPageBytes = 1 << 30;  // limit of device::Io
constexpr std::uint64_t kMostFrames = std::uint64_t{1} << 31;
constexpr std::uint64_t kMostAtOnce = probe::kMostIodepth;
constexpr std::uint64_t kMostTuned = 256;  // Source: guess, as the largest concurrency of a profile
constexpr double kMostTheta = 10;          // above it, one page has all but a thousandth of the references
constexpr std::array<std::pair<const char*, Pattern>, 3> kPatterns = {
    {{"uniform", Pattern::uniform}, {"zipfian", Pattern::zipfian}, {"sequential", Pattern::sequential}}};
constexpr std::uint64_t kMostHandOffNs = 1'000'000'000;
constexpr const char* kTrace = "trace";

Status unknown_writers(const std::string& name) {
  const std::string near = nearest(name, {"queue", "threads", "new-threads"});
  return Status::bad_input("pool.writers \"" + name + "\" is not known; " +
                           (near.empty() ? "it takes queue, threads or new-threads" : "did you mean " + near + "?"));
}

// Null: the measured table.
Status read_hand_off(const Json& json, pool::PoolSpec& spec) {
  spec.hand_off = pool::measured_hand_off(spec.writers);
  if (json.is_null()) return {};
  const std::string takes = "it takes null, or rows {n, first_ns, last_ns, told_ns} with n rising";
  if (!json.is_array() || json.empty()) return Status::bad_input("pool.hand_off is " + json.dump() + "; " + takes);
  spec.hand_off.clear();
  std::uint32_t least = 1;
  for (const Json& row : json) {
    if (least > pool::kMostWriterThreads) return Status::bad_input("pool.hand_off has too many rows; " + takes);
    Fields fields(row, "pool.hand_off[" + std::to_string(spec.hand_off.size()) + "]");
    pool::HandOff cost;
    cost.n = static_cast<std::uint32_t>(fields.whole("n", least, least, pool::kMostWriterThreads));
    cost.first_ns = static_cast<device::Nanos>(fields.whole("first_ns", 0, 0, kMostHandOffNs));
    cost.last_ns = static_cast<device::Nanos>(fields.whole("last_ns", 0, cost.first_ns, kMostHandOffNs));
    cost.told_ns = static_cast<device::Nanos>(fields.whole("told_ns", 0, 0, kMostHandOffNs));
    if (Status status = fields.finish(); !status) return status;
    spec.hand_off.push_back(cost);
    least = cost.n + 1;
  }
  return {};
}

// Null: n_w is pool.write_back.
Status read_tune(const Json& json, pool::PoolSpec& spec) {
  if (json.is_null()) return {};
  Fields fields(json, "pool.tune");
  spec.tune_most = static_cast<std::uint32_t>(fields.whole("most", kMostTuned, 1, kMostAtOnce));
  return fields.finish();
}

Status read_pool(const Json& json, BufferpoolRequest& request) {
  Fields fields(json, "pool");
  pool::PoolSpec& spec = request.pool;
  request.policy = fields.text("policy", "clock-sweep");
  spec.frames = static_cast<pool::Frame>(fields.whole("pages", 4096, 1, kMostFrames));
  spec.page_bytes = static_cast<std::uint32_t>(fields.whole("page_bytes", 4096, 1, kMostPageBytes));
  spec.write_back = static_cast<std::uint32_t>(fields.whole("write_back", 1, 1, kMostAtOnce));
  spec.prefetch = static_cast<std::uint32_t>(fields.whole("prefetch", 0, 0, kMostAtOnce));
  const std::string writers = fields.text("writers", pool::name_of(spec.writers));
  const Json& hand_off = fields.inner("hand_off");
  const Json& tune = fields.inner("tune");
  if (Status status = fields.finish(); !status) return status;
  if (Status status = read_tune(tune, spec); !status) return status;
  const auto kind = pool::writers_named(writers);
  if (!kind) return unknown_writers(writers);
  spec.writers = *kind;
  if (Status status = read_hand_off(hand_off, spec); !status) return status;
  // Makes a policy without frames, to check the name.
  auto policy = pool::make_policy(request.policy, 0);
  return policy ? Status::ok() : Status::bad_input("pool." + policy.status().message());
}

Status read_workload(const Json& json, BufferpoolRequest& request) {
  Fields fields(json, "workload");
  const std::string name = fields.text("name", "uniform");
  request.workload.read_fraction = fields.number("read_fraction", 0.5, 0, 1);
  request.workload.theta = fields.number("theta", 0.99, 0, kMostTheta);
  request.workload.pages = fields.optional_whole("pages", 1, kMostCount).value_or(0);
  request.warmup_operations = fields.optional_whole("warmup_operations", 0, kMostCount);
  request.operations = fields.optional_whole("operations", 1, kMostCount);
  request.trace = fields.text("trace", "");
  const bool from_file = name == kTrace;
  if (from_file && request.trace.empty()) fields.refuse("trace", "the path of a file with lines r PAGE and w PAGE");
  if (!from_file && !request.trace.empty()) fields.refuse("trace", "a path with workload.name \"trace\" only");
  if (Status status = fields.finish(); !status) return status;
  if (from_file) return {};
  std::vector<std::string> names = {kTrace};
  for (const auto& [known, pattern] : kPatterns) {
    names.emplace_back(known);
    if (name != known) continue;
    request.workload.pattern = pattern;
    return {};
  }
  const std::string near = nearest(name, names);
  return Status::bad_input(
      "workload.name \"" + name + "\" is not known; " +
      (near.empty() ? "it takes uniform, zipfian, sequential or trace" : "did you mean " + near + "?"));
}

}  // namespace

Result<BufferpoolRequest> read_bufferpool_request(const Json& json) {
  Fields fields(json, "");
  const std::uint64_t seed = fields.whole("seed", 1, 0, std::numeric_limits<std::uint64_t>::max());
  const Json& target = fields.inner("target");
  const Json& pool_field = fields.inner("pool");
  const Json& workload_field = fields.inner("workload");
  if (Status status = fields.finish(); !status) return status;
  auto probed = read_probe_request({{"seed", seed}, {"target", target}});
  if (!probed) return probed.status();
  BufferpoolRequest request;
  request.target = std::move(*probed);
  if (Status status = read_pool(pool_field, request); !status) return status;
  if (Status status = read_workload(workload_field, request); !status) return status;
  return request;
}

}  // namespace spillway::tool
