// Kills a process that writes to a database, again and again, and holds what is found afterwards against what was
// promised.
//
// A child opens the database, judges what the last one left, and writes, several threads with keys of their own, until
// it is killed: at a random moment, or when it comes to a named step. What it began and what was acknowledged stands in
// memory that outlives it. Killed, a process keeps its page cache; with `power_loss` the drive loses what was not
// synced as well.
//
// Judged is, for each thread: there is a number n of its operations after which its keys would be as they are found, in
// every family, read by key, in MultiGet and in order (so no batch is half there, no older version wins, nothing that
// was deleted returns); n is not less than what was acknowledged, or, after a loss of power, acknowledged as durable;
// and if an operation survives, so does every one, of any thread, that was acknowledged before it began.
// While it writes, a thread also reads its own keys and compares.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "crash_script.h"

namespace spillway::crash {

inline constexpr unsigned kThreads = 3;

struct Opened {
  std::shared_ptr<void> drive;  // what the database stands on, if that is more than files
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;  // two: the default one and "other"
};

// Opens the database in directory `root`, makes it when there is none.
using Opener = std::function<rocksdb::Status(const std::string& root, rocksdb::Env* env, Opened* opened)>;
// What a loss of power does to what stands beside the directory `root`, which is `next` from then on.
using LosePower = std::function<void(const std::string& root, const std::string& next, std::mt19937_64& random)>;
// Called again and again by a thread of its own while others write: flushes, compacts, turns diversion on and off.
using Stir = std::function<void(rocksdb::DB& db, std::mt19937_64& random)>;

struct CrashPlan {
  Opener open{};
  Stir stir{};
  LosePower also_loses{};
  Kinds kinds{};
  unsigned kills = 1;
  std::uint64_t seed = 1;
  bool power_loss = false;
  bool also_kills = true;  // a third of the deaths leaves the power on
  bool in_order = false;   // of the loss of power; see faults/power_loss.h
  std::string step{};      // die there; empty: at a random moment
  unsigned most_ms = 6;    // of writing
};

struct CrashReport {
  unsigned kills = 0;
  unsigned at_step = 0;          // of which when the step was reached
  std::uint64_t operations = 0;  // begun
  std::uint64_t lost = 0;        // of which did not survive
  std::set<std::string> steps;   // that were reached
  std::string failure;           // empty: every promise was kept
};

// How much of it: set once, by main().
struct Effort {
  unsigned times = 1;      // kills of every plan
  std::uint64_t seed = 0;  // added to the seed of every plan
};
Effort& effort();

// REQUIRES: this process has started no threads yet: it forks.
CrashReport run_crashes(const CrashPlan& plan);

// RocksDB's options for a child: little memory, so that it flushes and compacts often, and quick to open.
rocksdb::Options small_options(rocksdb::Env* env);
// Plain RocksDB.
rocksdb::Status open_rocksdb(const std::string& root, rocksdb::Env* env, Opened* opened);

}  // namespace spillway::crash
