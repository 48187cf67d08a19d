// Databases and drives that are kept from one run to the next: the state that a run starts from, and the one it leaves.
//
// A kept state is a drive as a run has left it (its flash, its wear, the place of each file) with the databases on it;
// for a plain directory, one database alone. A run uses its own database from the state, or only the files of all
// databases, or the drive alone. It works on a copy, and its result becomes the state only if it ends well. Counters
// start at 0 in each run, so figures are those of one run. Wear and the total of bytes written continue.
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
  // Locks and reads the states that the request names, checks that they fit the request, and adds the earlier phases of
  // its database to it. `json`: the request as received. bad_input, with one sentence that names both sides: the state
  // is of another engine, drive or kind of database, damaged, of another version, or in use.
  static Result<std::unique_ptr<KeptState>> open(const Json& json, RunRequest& request);

  // Describes the state that the run starts from, for messages and reports; null if there is none.
  Json start() const;
  // The kept state of the drive; none: use the request's initial state.
  std::optional<device::InitialState> initial() const;
  // Checks that the file of the drive's state is unchanged.
  Status check_state() const;
  // Restores the table of files, and the database's files in the request's directory. REQUIRES: the drive is in
  // initial()
  Status restore(fs::Volume* volume);
  // Bytes on the drive of databases other than the run's.
  std::uint64_t others_bytes() const { return others_bytes_; }

  // Keeps the run's result as the new state; null if the request keeps nothing. REQUIRES: the engine is closed
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
  std::unique_ptr<KeptDirectory> from_;  // null: none, or the same directory as `to`
  std::unique_ptr<KeptDirectory> to_;
  Json old_;  // the document of the state to start from; null: none
  std::uint64_t others_bytes_ = 0;
};

}  // namespace spillway::tool
