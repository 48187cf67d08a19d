// librocksdb-spillway.so: preloaded, it gives unmodified RocksDB programs (db_bench, ldb, sst_dump) an emulated drive:
//   LD_PRELOAD=librocksdb-spillway.so db_bench --fs_uri='spillway://preset=quickstart;capacity=8GiB;state=DIR' …
// As an Env it can be named in RocksDB's option strings and OPTIONS files: env=spillway://preset:quickstart,state:DIR
#include <rocksdb/env.h>
#include <rocksdb/utilities/object_registry.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "fs/rocksdb/file_system.h"
#include "plugin/kept_drive.h"

namespace spillway::plugin {

namespace {

// The drives of this process, by URI, and the Envs on them. There is one Drives and it is never destroyed: files and
// file systems that refer to its volumes live in static objects of the program, and in threads that run while it exits.
class Drives {
 public:
  static Drives& of_process() {
    static Drives* const drives = make();
    return *drives;
  }

  Result<fs::Volume*> volume(const std::string& uri) {
    const std::lock_guard lock(mutex_);
    return volume_locked(usual_spelling(uri));
  }

  // An option string can name only an Env that lives as long as the process.
  Result<rocksdb::Env*> environment(const std::string& given) {
    const std::string uri = usual_spelling(given);
    const std::lock_guard lock(mutex_);
    const auto found = environments_.find(uri);
    if (found != environments_.end()) return found->second.get();
    auto volume = volume_locked(uri);
    if (!volume) return volume.status();
    auto environment = rocksdb::NewCompositeEnv(fs::make_rocksdb_file_system(**volume));
    return environments_.emplace(uri, std::move(environment)).first->second.get();
  }

 private:
  Result<fs::Volume*> volume_locked(const std::string& uri) {
    const auto found = drives_.find(uri);
    if (found != drives_.end()) return &found->second->volume();
    auto drive = KeptDrive::open(uri);
    if (!drive) return drive.status();
    return &drives_.emplace(uri, std::move(*drive)).first->second->volume();
  }

  // Registered with the first drive, so after the constructors of the program's and RocksDB's static objects: exit()
  // calls this before their destructors. Programs close their databases before they exit. If one does not, the volume
  // is detached while the database uses it.
  static Drives* make() {
    std::atexit([] { of_process().close(); });
    return std::make_unique<Drives>().release();
  }

  void close() {
    const std::lock_guard lock(mutex_);
    bool failed = false;
    for (const auto& [uri, drive] : drives_) {
      if (Status status = drive->close(); !status) {
        std::fprintf(stderr, "spillway: %s\n", status.message().c_str());
        failed = true;
      }
    }
    if (!failed) return;
    // exit() cannot change its code any more, and a run whose drive was lost is not to look like a good one.
    std::fflush(nullptr);
    ::_exit(1);
  }

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<KeptDrive>> drives_;
  std::map<std::string, std::unique_ptr<rocksdb::Env>> environments_;
};

rocksdb::FileSystem* make_file_system(const std::string& uri, std::unique_ptr<rocksdb::FileSystem>* guard,
                                      std::string* problem) {
  auto volume = Drives::of_process().volume(uri);
  if (!volume) {
    *problem = volume.status().message();
    return nullptr;
  }
  *guard = fs::make_rocksdb_file_system(**volume);
  return guard->get();
}

rocksdb::Env* find_environment(const std::string& uri, std::unique_ptr<rocksdb::Env>*, std::string* problem) {
  auto environment = Drives::of_process().environment(uri);
  if (environment) return *environment;
  *problem = environment.status().message();
  return nullptr;
}

// Runs when the loader brings the plugin in: after RocksDB, on which it depends, and before main.
__attribute__((constructor)) void register_factories() {
  auto uris = rocksdb::ObjectLibrary::PatternEntry(kScheme, /*optional=*/false);
  uris.AddSeparator("://", /*at_least_one=*/false);
  rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::FileSystem>(uris, make_file_system);
  rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::Env>(uris, find_environment);
}

}  // namespace

}  // namespace spillway::plugin
