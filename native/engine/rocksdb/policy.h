// What stands beside a RocksDB to keep writers going, or does not: RocksDB's own slowdown, none, ADOC, the accelerator.
//
// A policy is made for one store, opens it, and is told before it is closed.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace spillway::engine {

struct EngineSpec;

class Policy {
 public:
  virtual ~Policy() = default;

  // Opens the database with the policy's own changes to the options, and begins.
  virtual rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) {
    return rocksdb::DB::Open(options, directory, db);
  }
  // Adds what the policy knows to what was seen of the database.
  virtual void observe(Observation& /*seen*/) {}
  // Adds the policy's cumulative figures, by names with its own first.
  virtual void add_statistics(std::map<std::string, std::uint64_t>& /*figures*/) {}
  virtual std::vector<Event> take_events() { return {}; }
  // Brings everything into the database that the policy kept out of it.
  virtual rocksdb::Status bring_back() { return rocksdb::Status::OK(); }
  // Ends what the policy runs. The database still stands.
  virtual void stop() {}
};

// By the setting `policy`, and of the engine spillway the accelerator. bad_input: an unknown setting or name, with the
// nearest; settings that do not go together.
Result<std::unique_ptr<Policy>> make_policy(const EngineSpec& spec);

// "slowdown", "no-slowdown", "adoc".
std::vector<std::string> policy_names();

}  // namespace spillway::engine
