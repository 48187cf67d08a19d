// db_bench's workloads: a stream of puts, gets and scans on keys and values of one size.
#pragma once

#include <cstdint>

#include "engine/engine.h"
#include "load/client/client.h"
#include "load/client/pairs.h"
#include "load/workload.h"

namespace spillway::load {

class DbBenchClient final : public Client {
 public:
  // `engine`, `pairs` and `values` outlive it.
  DbBenchClient(engine::Engine& engine, const PairSpec& pairs, const ValueBuffer& values, const ThreadSpec& thread_spec,
                std::uint64_t seek_nexts, std::uint32_t read_write_percent);

  Result<Outcome> execute() override;

 private:
  engine::Engine& engine_;
  const ValueBuffer& values_;
  std::uint64_t pair_bytes_;
  std::uint64_t seek_nexts_;
  OperationStream stream_;
  KeyBuffer key_;
  std::uint64_t next_value_;  // of the shared buffer; each thread begins at another
};

}  // namespace spillway::load
