#include "load/db_bench_client.h"

namespace spillway::load {

DbBenchClient::DbBenchClient(engine::Engine& engine, const PairSpec& pairs, const ValueBuffer& values,
                             const ThreadSpec& thread_spec, std::uint64_t seek_nexts, std::uint32_t read_write_percent)
    : engine_(engine),
      values_(values),
      pair_bytes_(pairs.pair_bytes()),
      seek_nexts_(seek_nexts),
      stream_(thread_spec, pairs.num, read_write_percent),
      key_(pairs.key_bytes),
      next_value_(thread_spec.seed % values.values()) {}

Result<Outcome> DbBenchClient::execute() {
  const Operation operation = stream_.next();
  const std::string_view key = key_.key(operation.key);
  Outcome outcome;
  if (operation.kind == Operation::Kind::put) {
    const std::string_view value = values_.value(next_value_);
    if (++next_value_ == values_.values()) next_value_ = 0;
    if (Status status = engine_.put(key, value); !status) return status;
    outcome.is_write = true;
    outcome.user_bytes_written = pair_bytes_;
    return outcome;
  }
  if (operation.kind == Operation::Kind::get) {
    const Result<bool> found = engine_.get(key, nullptr);
    if (!found) return found.status();
    outcome.pairs_read = found.value() ? 1 : 0;
  } else {
    const Result<std::uint64_t> seen = engine_.scan(key, seek_nexts_);
    if (!seen) return seen.status();
    outcome.pairs_read = seen.value();
  }
  outcome.not_found = outcome.pairs_read == 0;
  outcome.user_bytes_read = outcome.pairs_read * pair_bytes_;
  return outcome;
}

}  // namespace spillway::load
