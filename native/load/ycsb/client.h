// YCSB's two phases as clients: one inserts the records, the other reads, updates, inserts and scans them.
#pragma once

#include <cstdint>
#include <string>

#include "engine/engine.h"
#include "load/client/client.h"
#include "load/ycsb/inserted.h"
#include "load/ycsb/records.h"
#include "load/ycsb/requests.h"
#include "load/ycsb/values.h"

namespace spillway::load::ycsb {

// Shared by the threads of a phase.
struct PhaseContext {
  const Properties& properties;
  const ValueBuffer& values;  // of make_values()
  InsertedRecords& inserted;  // of the whole run
};

// Inserts insertcount records from insertstart on. The threads take turns: thread t of T inserts t, t + T, t + 2T, … So
// each record is inserted once, and which thread inserts it does not depend on timing.
class Loader final : public Client {
 public:
  Loader(engine::Engine& engine, const PhaseContext& context, const Requester& requester, std::uint64_t seed);

  // REQUIRES: called no more often than the thread has records.
  Result<Outcome> execute() override;

 private:
  engine::Engine& engine_;
  KeyNames names_;
  RecordValues values_;
  std::uint64_t next_record_;
  std::uint64_t stride_;
};

// Kinds, fields and lengths are functions of the seed alone. So are the requested records, unless several threads
// insert: then a thread also chooses among the records that other threads have inserted by that time.
class Transactions final : public Client {
 public:
  Transactions(engine::Engine& engine, const PhaseContext& context, const Requester& requester, std::uint64_t seed);

  Result<Outcome> execute() override;

 private:
  Result<Outcome> read();
  Result<Outcome> update();
  Result<Outcome> insert();
  Result<Outcome> scan();
  Result<Outcome> readmodifywrite();

  std::string_view choose_key();
  // Reads the record of `key` into record_ and counts it as read.
  Result<bool> get(std::string_view key, Outcome& outcome);
  Status write(std::string_view key, std::string_view value, Outcome& outcome);
  Status apply_update(std::string_view key, Outcome& outcome);

  engine::Engine& engine_;
  const Properties& properties_;
  InsertedRecords& inserted_;
  KeyNames names_;
  RecordValues values_;
  KindChooser kinds_;
  RecordChooser records_;
  Lengths scan_lengths_;
  double mean_value_bytes_;
  ssd::Random kind_random_;  // a generator for each, so that one choice does not shift the others
  ssd::Random record_random_;
  ssd::Random field_random_;
  ssd::Random scan_random_;
  std::string record_;
};

}  // namespace spillway::load::ycsb
