#include "tool/lsm/request.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lsm/grain.h"
#include "lsm/writer.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/fields.h"

namespace spillway::tool {
namespace {

constexpr double kMostBytes = 1e18;
constexpr double kMostCount = 1e15;
constexpr double kLeastIntervalS = 1e-3;  // a load of a terabyte takes some 1,000 s. Source: guess
constexpr double kMostDivisor = 1e9;
constexpr std::uint64_t kMostFiles = 1'000'000;
constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kMostQueries = std::uint64_t{1} << 40;

std::uint32_t small(Fields& fields, const char* key, std::uint32_t fallback, std::uint64_t low, std::uint64_t high) {
  return static_cast<std::uint32_t>(fields.whole(key, fallback, low, high));
}

Status read_universal(const Json& json, lsm::UniversalOptions& universal) {
  Fields fields(json, "tree.universal");
  universal.size_ratio = fields.number("size_ratio", universal.size_ratio, 0, 1e6);
  universal.min_merge_width = small(fields, "min_merge_width", universal.min_merge_width, 2, kMostFiles);
  universal.max_size_amplification_percent =
      fields.number("max_size_amplification_percent", universal.max_size_amplification_percent, 0, 1e6);
  return fields.finish();
}

// One level without a limit, and C = 0 unless a trigger is given (M30).
void make_single_level(lsm::TreeOptions& tree, bool gives_trigger) {
  if (!gives_trigger) tree.level0_file_num_compaction_trigger = 1;
  tree.levels = 2;
  tree.level_compaction_dynamic_level_bytes = false;
}

void read_sizes(Fields& fields, lsm::TreeOptions& tree) {
  tree.write_buffer_size = fields.number("write_buffer_size", tree.write_buffer_size, 65536, kMostBytes);
  tree.target_file_size_base = fields.number("target_file_size_base", tree.target_file_size_base, 65536, kMostBytes);
  tree.target_file_size_multiplier = fields.number("target_file_size_multiplier", 1, 1, 1000);
  tree.max_bytes_for_level_base =
      fields.number("max_bytes_for_level_base", tree.max_bytes_for_level_base, 65536, kMostBytes);
  tree.soft_pending_compaction_bytes_limit =
      fields.number("soft_pending_compaction_bytes_limit", tree.soft_pending_compaction_bytes_limit, 0, kMostBytes);
  tree.hard_pending_compaction_bytes_limit =
      fields.number("hard_pending_compaction_bytes_limit", tree.hard_pending_compaction_bytes_limit, 0, kMostBytes);
  tree.delayed_write_rate = fields.number("delayed_write_rate", tree.delayed_write_rate, 1, kMostBytes);
  if (tree.delayed_write_rate < 1) tree.delayed_write_rate = 16.0 * 1048576;
  tree.block_size = fields.number("block_size", tree.block_size, 64, 1e9);
  tree.bits_per_key = fields.number("bits_per_key", 0, 0, 100);
}

void read_counts(Fields& fields, lsm::TreeOptions& tree) {
  tree.fanout = fields.number("fanout", tree.fanout, 1.1, 1e9);
  tree.levels = small(fields, "levels", tree.levels, 2, 64);
  tree.level0_file_num_compaction_trigger =
      small(fields, "level0_file_num_compaction_trigger", tree.level0_file_num_compaction_trigger, 1, kMostFiles);
  tree.level0_slowdown_writes_trigger =
      small(fields, "level0_slowdown_writes_trigger", tree.level0_slowdown_writes_trigger, 1, kMostFiles);
  tree.level0_stop_writes_trigger =
      small(fields, "level0_stop_writes_trigger", tree.level0_stop_writes_trigger, 1, kMostFiles);
  tree.max_write_buffer_number = small(fields, "max_write_buffer_number", tree.max_write_buffer_number, 1, kMostFiles);
  tree.compaction_threads = small(fields, "compaction_threads", tree.compaction_threads, 1, kMostThreads);
  tree.flush_threads = small(fields, "flush_threads", tree.flush_threads, 1, kMostThreads);
  tree.max_subcompactions = small(fields, "max_subcompactions", tree.max_subcompactions, 1, kMostThreads);
}

void read_blobs(Fields& fields, lsm::BlobOptions& blobs) {
  blobs.enabled = fields.flag("enable_blob_files", false);
  blobs.min_blob_size = fields.number("min_blob_size", blobs.min_blob_size, 0, kMostBytes);
  blobs.file_size = fields.number("blob_file_size", blobs.file_size, 65536, kMostBytes);
  blobs.garbage_collection = fields.flag("enable_blob_garbage_collection", false);
  blobs.age_cutoff = fields.number("blob_garbage_collection_age_cutoff", blobs.age_cutoff, 0, 1);
  blobs.force_threshold = fields.number("blob_garbage_collection_force_threshold", blobs.force_threshold, 0, 1);
}

Status read_tree(const Json& json, lsm::TreeOptions& tree) {
  Fields fields(json, "tree");
  Status problem;
  constexpr std::array kShapes = {lsm::Shape::leveled, lsm::Shape::universal, lsm::Shape::single_level};
  tree.shape = kShapes[choice(fields, "tree", "shape", {"leveled", "universal", "single-level"}, 0, problem)];
  constexpr std::array kPris = {lsm::CompactionPri::min_overlapping_ratio, lsm::CompactionPri::by_compensated_size};
  tree.compaction_pri =
      kPris[choice(fields, "tree", "compaction_pri", {"kMinOverlappingRatio", "kByCompensatedSize"}, 0, problem)];
  read_counts(fields, tree);
  read_sizes(fields, tree);
  read_blobs(fields, tree.blobs);
  tree.level_compaction_dynamic_level_bytes = fields.flag("level_compaction_dynamic_level_bytes", false);
  tree.level_compaction_dynamic_file_size = fields.flag("level_compaction_dynamic_file_size", true);
  tree.slowdown = fields.flag("slowdown", true);
  tree.trivial_moves = fields.flag("trivial_moves", true);
  tree.wal = fields.flag("wal", true);
  tree.discard = fields.flag("discard", true);
  const Json& universal = fields.inner("universal");
  if (Status status = fields.finish(); !status) return status;
  if (!problem) return problem;
  if (tree.shape == lsm::Shape::single_level) {
    make_single_level(tree, !json.value(Json::json_pointer("/level0_file_num_compaction_trigger"), Json()).is_null());
  }
  if (tree.level0_stop_writes_trigger < tree.level0_slowdown_writes_trigger ||
      tree.level0_slowdown_writes_trigger < tree.level0_file_num_compaction_trigger) {
    return Status::bad_input(
        "tree: level0_file_num_compaction_trigger, level0_slowdown_writes_trigger and level0_stop_writes_trigger must "
        "not fall in this order");
  }
  return read_universal(universal, tree.universal);
}

Status read_spill(const Json& json, lsm::SpillPolicy& spill) {
  Fields fields(json, "spill");
  spill.capacity_bytes = fields.number("capacity_bytes", 0, 0, kMostBytes);
  spill.generation_bytes = fields.number("generation_bytes", 0, 0, kMostBytes);
  return fields.finish();
}

// Beside one another, since a pair must fit the spill store.
Status check_spill(const lsm::SpillPolicy& spill, const lsm::LoadSpec& load) {
  const double least = lsm::least_spill_bytes(lsm::kLogChunkBytes, load);
  if (spill.capacity_bytes == 0 || spill.capacity_bytes >= least) return {};
  return Status::bad_input("spill.capacity_bytes is " + std::to_string(std::llround(spill.capacity_bytes)) +
                           ", less than two requests or two pairs; give 0, for no spill store, or at least " +
                           std::to_string(std::llround(least)));
}

Status read_host(const Json& json, lsm::HostCosts& host) {
  Fields fields(json, "host");
  host.put_ns = fields.number("put_ns", host.put_ns, 1, 1e12);
  host.put_byte_ns = fields.number("put_byte_ns", host.put_byte_ns, 0, 1e9);
  host.flush_entry_ns = fields.number("flush_entry_ns", host.flush_entry_ns, 0, 1e12);
  host.flush_byte_ns = fields.number("flush_byte_ns", host.flush_byte_ns, 0, 1e9);
  host.merge_entry_ns = fields.number("merge_entry_ns", host.merge_entry_ns, 0, 1e12);
  host.merge_byte_ns = fields.number("merge_byte_ns", host.merge_byte_ns, 0, 1e9);
  host.get_ns = fields.number("get_ns", host.get_ns, 0, 1e12);
  host.probe_ns = fields.number("probe_ns", host.probe_ns, 0, 1e12);
  host.next_ns = fields.number("next_ns", host.next_ns, 0, 1e12);
  host.cores = fields.number("cores", host.cores, 0.01, 100'000);
  host.log_dirty_bytes = fields.number("log_dirty_bytes", host.log_dirty_bytes, 0, kMostBytes);
  return fields.finish();
}

Status read_lsm_load(const Json& json, lsm::LoadSpec& load) {
  Fields fields(json, "load");
  Status problem;
  load.key_bytes = fields.number("key_bytes", load.key_bytes, 1, 1e6);
  load.value_bytes = fields.number("value_bytes", load.value_bytes, 0, 1e9);
  load.keys = static_cast<double>(fields.whole("num", 1'000'000, 1, static_cast<std::uint64_t>(kMostCount)));
  const auto operations = fields.optional_whole("operations", 1, static_cast<std::uint64_t>(kMostCount));
  constexpr std::array kOrders = {lsm::KeyOrder::unique_random, lsm::KeyOrder::sequential, lsm::KeyOrder::uniform,
                                  lsm::KeyOrder::zipfian};
  load.order = kOrders[choice(fields, "load", "distribution", {"filluniquerandom", "fillseq", "uniform", "zipfian"}, 0,
                              problem)];
  constexpr std::array kPreloads = {lsm::Preload::none, lsm::Preload::in_order, lsm::Preload::unsettled};
  load.preload = kPreloads[choice(fields, "load", "preload", {"none", "fillseq", "fillseq-unsettled"}, 0, problem)];
  load.zipfian_constant = fields.number("zipfian_constant", 0.99, 0.01, 10);
  load.zipfian_ranks = static_cast<double>(fields.whole("zipfian_ranks", 0, 0, static_cast<std::uint64_t>(kMostCount)));
  load.duration_s = fields.optional_number("duration_s", kLeastIntervalS, 1e12);
  load.rate_ops_s = fields.optional_number("rate_ops_s", 1e-3, 1e12);
  if (const auto report = fields.optional_whole("report_operations", 1, static_cast<std::uint64_t>(kMostCount))) {
    load.report_operations = static_cast<double>(*report);
  }
  load.report_s = fields.optional_number("report_s", kLeastIntervalS, 1e12);
  load.settle = fields.flag("settle", true);
  if (Status status = fields.finish(); !status) return status;
  if (!problem) return problem;
  if (load.report_operations && load.report_s) {
    return Status::bad_input("load.report_operations and load.report_s are both given; a load reports once");
  }
  load.operations = operations ? static_cast<double>(*operations) : load.keys;
  const bool once = load.order == lsm::KeyOrder::unique_random || load.order == lsm::KeyOrder::sequential;
  if (once && load.preload != lsm::Preload::none) {
    return Status::bad_input(
        "load.preload puts every key into the tree, and this distribution writes keys that are not there; take uniform "
        "or zipfian");
  }
  if (load.zipfian_ranks > 0 && load.zipfian_ranks < load.keys) {
    return Status::bad_input(
        "load.zipfian_ranks is below load.num: each key needs a rank; raise it, or take 0 for as many as there are "
        "keys");
  }
  if (once && load.operations > load.keys) {
    return Status::bad_input(
        "load.operations is above load.num, and this distribution writes each key once; lower it or "
        "take uniform");
  }
  return {};
}

Status read_queries(const Json& json, std::vector<lsm::QuerySpec>& queries) {
  if (json.is_null()) return {};
  if (!json.is_array()) return Status::bad_input("queries is not an array; it takes objects with workload and threads");
  for (const Json& one : json) {
    const std::string path = "queries[" + std::to_string(queries.size()) + "]";
    Fields fields(one, path);
    Status problem;
    lsm::QuerySpec query;
    query.kind = choice(fields, path, "workload", {"readrandom", "seekrandom"}, 0, problem) == 0
                     ? lsm::QuerySpec::Kind::point
                     : lsm::QuerySpec::Kind::scan;
    query.threads = small(fields, "threads", 1, 1, 65536);
    query.operations = fields.whole("operations", 100'000, 1, kMostQueries);
    query.seek_nexts = fields.number("seek_nexts", 128, 0, 1e9);
    if (Status status = fields.finish(); !status) return status;
    if (!problem) return problem;
    queries.push_back(query);
  }
  return {};
}

bool lies_beside(const LsmRequest& request) {
  const device::InitialState& initial = request.initial;
  using Kind = device::InitialState::Kind;
  return !request.overwrites_initial && initial.partition == device::InitialState::Partition::as_is &&
         (initial.kind == Kind::sequential || initial.kind == Kind::steady);
}

Status check_place(const LsmRequest& request) {
  if (!lies_beside(request) || request.initial.fill < 1) return {};
  return Status::bad_input(
      "initial.fill is 1: other data leaves no space for the tree; lower it, or set overwrites_initial to let the tree "
      "overwrite that data");
}

}  // namespace

lsm::DriveRegion region_of(const LsmRequest& request, std::uint64_t capacity_bytes, std::uint32_t grain) {
  lsm::DriveRegion region;
  if (lies_beside(request)) {
    region.begin = static_cast<std::uint64_t>(std::ceil(request.initial.fill * static_cast<double>(capacity_bytes)));
  } else if (request.initial.partition != device::InitialState::Partition::as_is &&
             request.initial.partition_bytes > 0) {
    region.end = request.initial.partition_bytes / grain;
  }
  return region;
}

Result<LsmRequest> read_lsm_request(const Json& json) {
  Fields fields(json, "");
  const Json& drive = fields.inner("drive");
  const Json& initial = fields.inner("initial");
  const Json& tree = fields.inner("tree");
  const Json& spill = fields.inner("spill");
  const Json& host = fields.inner("host");
  const Json& load = fields.inner("load");
  const Json& queries = fields.inner("queries");
  LsmRequest request;
  request.spec.seed = fields.whole("seed", 1, 0, std::numeric_limits<std::uint64_t>::max());
  request.spec.sample_interval_s = fields.number("sample_interval_s", 0, 0, 1e9);
  const double interval_s = request.spec.sample_interval_s;
  request.grain = static_cast<std::uint32_t>(fields.whole("grain", 0, 0, lsm::kMostGrain));
  request.spec.divided_by = fields.number("divided_by", 1, 1, kMostDivisor);
  request.overwrites_initial = fields.flag("overwrites_initial", false);
  if (Status status = fields.finish(); !status) return status;
  if (interval_s > 0 && interval_s < kLeastIntervalS) {
    return Status::bad_input("sample_interval_s takes 0, for no samples, or 0.001 and more");
  }
  if ((request.grain & (request.grain - 1)) != 0) {
    return Status::bad_input("grain is " + std::to_string(request.grain) +
                             "; it takes a power of two, or 0 to choose one");
  }
  auto resolved = read_drive(drive);
  if (!resolved) return resolved.status();
  request.drive = std::move(*resolved);
  auto state = read_initial(initial);
  if (!state) return state.status();
  request.initial = std::move(*state);
  if (Status status = check_place(request); !status) return status;
  for (const Status& status :
       {read_tree(tree, request.spec.tree), read_spill(spill, request.spec.spill), read_host(host, request.spec.host),
        read_lsm_load(load, request.spec.load), read_queries(queries, request.spec.queries)}) {
    if (!status) return status;
  }
  if (Status status = check_spill(request.spec.spill, request.spec.load); !status) return status;
  return request;
}

}  // namespace spillway::tool
