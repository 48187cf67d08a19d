// The policy of a RocksDB against write stalls: RocksDB's own slowdown, no slowdown, ADOC, flow control,
// the accelerator.
//
// A policy is made for one database, opens it, and is stopped before it is closed.
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
#include "spill/compat/db_out.h"

namespace spillway::engine {

struct EngineSpec;

class Policy {
 public:
  virtual ~Policy() = default;

  // Opens the database with the policy's own changes to the options, and starts the policy.
  virtual rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) {
    return rocksdb::DB::Open(options, directory, spill::DbOut(db));
  }
  // Called before each write of an open database, with the bytes of its keys and values; returns when it may begin. Its
  // time is a part of the write's. Thread-safe.
  virtual void before_write(std::uint64_t /*bytes*/) {}
  // Whether RocksDB is to wait for space on a full drive. The accelerator does so within bounds.
  virtual bool waits_for_space() const { return false; }
  // Adds the policy's part of the observation.
  virtual void observe(Observation& /*observation*/) {}
  // Adds the policy's counters, whose names begin with the policy's.
  virtual void add_statistics(std::map<std::string, std::uint64_t>& /*figures*/) {}
  virtual std::vector<Event> take_events() { return {}; }
  // Of the writes that begin later. REQUIRES: the database is open.
  virtual void set_diversion(Diversion /*diversion*/) {}
  // Brings writes that the policy diverted into the database.
  virtual rocksdb::Status roll_back() { return rocksdb::Status::OK(); }
  // Stops the policy's threads, and lets writers go that wait for it. REQUIRES: the database is open.
  virtual void stop() {}
};

// By the setting `policy`, and of the engine spillway the accelerator. bad_input: an unknown setting or name, with the
// nearest; settings that do not go together.
Result<std::unique_ptr<Policy>> make_policy(const EngineSpec& spec);

// "slowdown", "no-slowdown", "adoc", "flow-control".
std::vector<std::string> policy_names();

}  // namespace spillway::engine
