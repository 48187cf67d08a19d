// Databases and drives that are kept from one run to the next: what a run starts from, and what it leaves.
//
// A kept state is a drive as a run has left it (its flash, its wear, where each file lies) with the databases on it,
// and of a plain directory a database alone. A run takes of it its own database, or the files of all as they lie, or
// the drive alone; it works on a copy, and keeps what it leaves only when it has ended well. Counters begin anew with
// each run, so that figures are a run's own; wear, and what was written in all, go on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/emulated/emulated.h"
#include "fs/volume.h"
#include "load/run.h"
#include "tool/protocol/events.h"
#include "tool/run/kept_directory.h"
#include "tool/run/request.h"

namespace spillway::tool {

class KeptState {
 public:
  // Locks and reads what the request names, holds it against the rest of the request, and sets what was done on its
  // database before. `json`: the request as it came. bad_input, with one sentence that names both sides: it is of
  // another engine, drive or kind of database; it is damaged, of another version or in use.
  static Result<std::unique_ptr<KeptState>> open(const Json& json, RunRequest& request);

  // What the run starts from, for people and reports; null where it starts from nothing that was kept.
  Json start() const;
  // The drive's state that was kept; none: as the request says.
  std::optional<device::InitialState> initial() const;
  // That the drive's state is what was kept.
  Status check_state() const;
  // The table of files and the database's files, into the request's directory. REQUIRES: the drive is in initial()
  Status restore(fs::Volume* volume);
  // On the drive, of databases that are not the run's.
  std::uint64_t others_bytes() const { return others_bytes_; }

  // What the run leaves takes its place; null where it keeps nothing. REQUIRES: the engine is closed
  Result<Json> keep(device::EmulatedDevice* device, fs::Volume* volume, const load::RunReport& report);

 private:
  explicit KeptState(const Json& json, const RunRequest& request)
      : json_(json), request_(request), asked_(*request.kept) {}

  Status lock();
  Status check_fits(RunRequest& request);
  Status check_drive() const;
  Status check_database(RunRequest& request);
  Status read_past(const Json& database, load::RunSpec& spec) const;
  Status add_drive(device::EmulatedDevice& device, fs::Volume& volume);
  Status add_databases();
  Json document(device::EmulatedDevice* device, fs::Volume* volume, const load::RunReport& report) const;
  Json done_on_database(const load::RunReport& report) const;
  bool is_own(const std::string& relative) const { return relative.starts_with(asked_.database + "/"); }
  const Json* find_file(const std::string& relative) const;
  const KeptDirectory& source() const { return from_ ? *from_ : *to_; }
  Status differs(const std::string& sentence) const {
    return Status::bad_input("kept.from: " + asked_.from + " " + sentence);
  }

  const Json& json_;
  const RunRequest& request_;
  const KeptRequest& asked_;
  std::unique_ptr<KeptDirectory> from_;  // null: nothing, or the same place as `to`
  std::unique_ptr<KeptDirectory> to_;
  Json old_;  // the state's document; null: the run starts from none
  std::uint64_t others_bytes_ = 0;
};

}  // namespace spillway::tool
