// Kills a process that writes to a database, repeatedly, and checks what is found afterwards against what was promised.
//
// A child opens the database, judges what the last child left, and writes until it is killed, at a random time or at a
// named step. It has several threads with separate keys. What it began and what was acknowledged is recorded in memory
// that outlives it. A kill leaves the page cache. With `power_loss` the drive also loses what was not synced.
//
// The judgement, for each thread: there is a number n of its operations after which its keys would be as they are
// found, in every family, by Get, MultiGet and iterators. So no batch is partly there, no older version wins, and
// nothing that was deleted returns. n is at least what was acknowledged, or, after a loss of power, acknowledged as
// durable. If an operation survives, so does every operation, of any thread, that was acknowledged before it began.
// While a thread writes, it also reads its own keys and compares. A copy that is made meanwhile is judged in the same
// way, and again after the child has died.
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
  std::shared_ptr<void> drive;  // what the database depends on apart from files
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;  // two: the default one and "other"
  std::vector<rocksdb::ColumnFamilyHandle*> imported;  // see crash_client.h
};

// Opens the database in directory `root`; creates it if there is none.
using Opener = std::function<rocksdb::Status(const std::string& root, rocksdb::Env* env, Opened* opened)>;
// Applies a loss of power to what is stored outside the directory `root`, which is named `next` afterwards.
using LosePower = std::function<void(const std::string& root, const std::string& next, std::mt19937_64& random)>;
// Creates in `directory`, which does not exist, a copy of the database that plain RocksDB can open.
using TakeCopy = std::function<rocksdb::Status(rocksdb::DB& db, const std::string& directory)>;
// The environment of a thread that does other things while others write.
struct Scene {
  Opened& store;
  std::string root;
  rocksdb::Env* env;
  std::mt19937_64& random;
  // Makes a copy and checks it against what was written. Returns what is wrong with it.
  std::function<std::string(const TakeCopy& take)> judge_copy;
};
// Called repeatedly by its own thread while others write: flushes, compacts, turns diversion on and off. Returns what
// is wrong, or "".
using Stir = std::function<std::string(Scene& scene)>;
// Called before a child opens the database. Returns what is wrong, or "". `judge` checks a database that was opened in
// another way against what was promised.
using Judge = std::function<std::string(Opened& store)>;
using Visit = std::function<std::string(const std::string& root, rocksdb::Env* env, const Judge& judge)>;

struct CrashPlan {
  Opener open{};
  Stir stir{};
  Visit visit{};
  Judge checks{};  // checks that the judge does not make
  LosePower also_loses{};
  Kinds kinds{};
  unsigned kills = 1;
  std::uint64_t seed = 1;
  bool power_loss = false;
  bool also_kills = true;  // a third of the deaths are kills without a loss of power
  bool in_order = false;   // for the loss of power; see faults/power_loss.h
  std::string step{};      // the step at which to die; empty: at a random time
  unsigned most_ms = 6;    // longest time of writing
  // In every second life the drive has room for only that many more bytes, and a thread stops writing after a refused
  // write. 0: no limit. `only_in`: counts only files with this in their names.
  std::uint64_t room_bytes = 0;
  std::string only_in{};
};

struct CrashReport {
  unsigned kills = 0;
  unsigned at_step = 0;          // how many of them at the step
  std::uint64_t operations = 0;  // operations that were begun
  std::uint64_t lost = 0;        // how many of them did not survive
  std::uint64_t refused = 0;     // writes to files that a full drive refused
  std::uint64_t copies = 0;      // copies that were judged
  std::set<std::string> steps;   // steps that were reached
  std::string failure;           // empty: every promise was kept
};

// The amount of testing. Set once, by main().
struct Effort {
  unsigned times = 1;      // factor on the kills of every plan
  std::uint64_t seed = 0;  // added to the seed of every plan
};
Effort& effort();

// REQUIRES: this process has not started a thread yet, because it forks.
CrashReport run_crashes(const CrashPlan& plan);

// RocksDB's options for a child: little memory, so that it flushes and compacts often and opens fast.
rocksdb::Options small_options(rocksdb::Env* env);
// Closes the database while others write to another one.
void close(Opened& store);
// The two families of the database at `path`, whether it exists or not, and those that were imported into it.
inline constexpr char kImported[] = "imported-";
std::vector<std::string> families_in(const std::string& path, rocksdb::Env* env);
void take_handles(const std::vector<rocksdb::ColumnFamilyHandle*>& handles, Opened* opened);
// Plain RocksDB.
rocksdb::Status open_rocksdb_at(const std::string& path, rocksdb::Env* env, Opened* opened);
rocksdb::Status open_rocksdb(const std::string& root, rocksdb::Env* env, Opened* opened);

}  // namespace spillway::crash
