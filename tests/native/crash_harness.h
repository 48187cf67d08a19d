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
// While it writes, a thread also reads its own keys and compares. A copy that is taken meanwhile is judged in the same
// way, and once more after the death of whoever took it.
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
  std::vector<rocksdb::ColumnFamilyHandle*> imported;  // see crash_client.h
};

// Opens the database in directory `root`, makes it when there is none.
using Opener = std::function<rocksdb::Status(const std::string& root, rocksdb::Env* env, Opened* opened)>;
// What a loss of power does to what stands beside the directory `root`, which is `next` from then on.
using LosePower = std::function<void(const std::string& root, const std::string& next, std::mt19937_64& random)>;
// Makes in `directory`, which does not exist, a copy of the database that plain RocksDB opens.
using TakeCopy = std::function<rocksdb::Status(rocksdb::DB& db, const std::string& directory)>;
// What a thread finds that does other things while others write.
struct Scene {
  Opened& store;
  std::string root;
  rocksdb::Env* env;
  std::mt19937_64& random;
  // Takes a copy and holds it against what was written. Says what is wrong with it.
  std::function<std::string(const TakeCopy& take)> judge_copy;
};
// Called again and again by a thread of its own while others write: flushes, compacts, turns diversion on and off. Says
// what went wrong, or nothing.
using Stir = std::function<std::string(Scene& scene)>;
// Called before a child opens the database. Says what is wrong, or nothing. `judge` holds a database that was opened by
// somebody else against what was promised.
using Judge = std::function<std::string(Opened& store)>;
using Visit = std::function<std::string(const std::string& root, rocksdb::Env* env, const Judge& judge)>;

struct CrashPlan {
  Opener open{};
  Stir stir{};
  Visit visit{};
  Judge checks{};  // what the judge does not know of
  LosePower also_loses{};
  Kinds kinds{};
  unsigned kills = 1;
  std::uint64_t seed = 1;
  bool power_loss = false;
  bool also_kills = true;  // a third of the deaths leaves the power on
  bool in_order = false;   // of the loss of power; see faults/power_loss.h
  std::string step{};      // die there; empty: at a random moment
  unsigned most_ms = 6;    // of writing
  // In every second life the drive has room for so many bytes more than at its beginning, and a thread whose write is
  // refused writes no more; 0: for any number. `only_in`: in files that have this in their names.
  std::uint64_t room_bytes = 0;
  std::string only_in{};
};

struct CrashReport {
  unsigned kills = 0;
  unsigned at_step = 0;          // of which when the step was reached
  std::uint64_t operations = 0;  // begun
  std::uint64_t lost = 0;        // of which did not survive
  std::uint64_t refused = 0;     // writes to files, because the drive was full
  std::uint64_t copies = 0;      // that were judged
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
// Closes what was opened while others write to something else.
void close(Opened& store);
// The two families of the database at `path`, whether it is there or not, and those that were imported into it.
inline constexpr char kImported[] = "imported-";
std::vector<std::string> families_in(const std::string& path, rocksdb::Env* env);
void take_handles(const std::vector<rocksdb::ColumnFamilyHandle*>& handles, Opened* opened);
// Plain RocksDB.
rocksdb::Status open_rocksdb_at(const std::string& path, rocksdb::Env* env, Opened* opened);
rocksdb::Status open_rocksdb(const std::string& root, rocksdb::Env* env, Opened* opened);

}  // namespace spillway::crash
