#include "accelerate/preload/accelerator.h"

#include <dlfcn.h>

#include <memory>
#include <set>
#include <string>

#include "accelerate/preload/process_start.h"
#include "accelerate/preload/rocksdb_library.h"
#include "base/mutex.h"
#include "spill/compat/version_misfit.h"

// The first that is preloaded. Another copy of the library finds the first one's here.
// NOLINTBEGIN(readability-identifier-naming): a symbol in C
extern "C" const char spillway_accelerate_preloaded;
const char spillway_accelerate_preloaded = 1;
// NOLINTEND(readability-identifier-naming)

namespace spillway::accelerate {

thread_local int Inside::depth = 0;

namespace {

constexpr const char* kOpenerLibrary = "libspillway-accelerator.so";
thread_local int calls = 0;

// The parts of the accelerator in this process.
struct Accelerator {
  Opener* opener = nullptr;
  std::string own_file;
  std::string opener_file;
};

void stay_out(const std::string& why) { say((why + "; going on without acceleration").c_str()); }

// The file of another copy of this library that is preloaded before this one; empty if there is none.
std::string earlier_copy(const std::string& own_file) {
  const void* const first = ::dlsym(RTLD_DEFAULT, "spillway_accelerate_preloaded");
  const std::string file = first == nullptr ? "" : file_of(first);
  return file == own_file ? "" : file;
}

// An opener only if RocksDB is a shared library of the version that it was built for. One that is part of another
// library (a Java binding) must not be mixed with librocksdb.so.
Accelerator load() {
  Accelerator accelerator;
  accelerator.own_file = file_of(reinterpret_cast<const void*>(&load));
  if (const std::string first = earlier_copy(accelerator.own_file); !first.empty()) {
    say((accelerator.own_file + " stays out: " + first + " is preloaded before it").c_str());
    return accelerator;
  }
  const auto rocksdb = find_rocksdb();
  if (!rocksdb) {
    stay_out("this program's RocksDB does not tell its version");
    return accelerator;
  }
  if (const std::string misfit = spill::version_misfit(spill::version_of_headers(), rocksdb->version);
      !misfit.empty()) {
    stay_out(misfit);
    return accelerator;
  }
  const std::string file = rocksdb->path.substr(rocksdb->path.rfind('/') + 1);
  if (!file.starts_with("librocksdb.so")) {
    stay_out("this program's RocksDB is a part of " + rocksdb->path + ", not a library of its own");
    return accelerator;
  }
  // The loader would load that one beside the program's, and bind the accelerator to it or to both.
  if (rocksdb->handle == nullptr || ::dlopen(SPILLWAY_ROCKSDB_LIBRARY, RTLD_LAZY | RTLD_NOLOAD) != rocksdb->handle) {
    stay_out("the library was linked to " SPILLWAY_ROCKSDB_LIBRARY ", and this program has " + rocksdb->path +
             ", which is another");
    return accelerator;
  }
  accelerator.opener_file = library_directory() + kOpenerLibrary;
  void* const library = ::dlopen(accelerator.opener_file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const made = library == nullptr ? nullptr : ::dlsym(library, "spillway_opener");
  if (made == nullptr) {
    const char* const error = ::dlerror();
    stay_out(error == nullptr ? accelerator.opener_file + " is not Spillway's" : error);
    return accelerator;
  }
  accelerator.opener =
      reinterpret_cast<decltype(&spillway_opener)>(made)({first_directory(), &write_to_standard_error});
  return accelerator;
}

// Never destroyed, because destructors of the program may still open databases.
const Accelerator& accelerator_of_process() {
  static const Accelerator* const accelerator = std::make_unique<Accelerator>(load()).release();
  return *accelerator;
}

// When the program starts. Functions of another version may have other names, so that a call of them may never come
// here; calls of a library that is loaded later are answered when they come.
__attribute__((constructor)) void check_version() {
  if (::dlsym(RTLD_NEXT, "rocksdb_open") == nullptr) return;
  const auto rocksdb = find_rocksdb();
  if (!rocksdb) return;
  const std::string misfit = spill::version_misfit(spill::version_of_headers(), rocksdb->version);
  if (!misfit.empty()) stay_out(misfit);
}

}  // namespace

Opener* opener_for(const void* caller) {
  ++calls;
  if (Inside::is_inside()) return nullptr;
  const Inside inside;
  const Accelerator& accelerator = accelerator_of_process();
  if (accelerator.opener == nullptr) return nullptr;
  const std::string file = file_of(caller);
  return file == accelerator.opener_file || file == accelerator.own_file ? nullptr : accelerator.opener;
}

bool is_accelerated() {
  const Inside inside;
  return accelerator_of_process().opener != nullptr;
}

int calls_in_thread() { return calls; }

void say(const char* text) {
  static Mutex* const mutex = std::make_unique<Mutex>().release();
  static std::set<std::string>* const said = std::make_unique<std::set<std::string>>().release();
  const MutexLock lock(*mutex);
  if (said->insert(text).second) write_to_standard_error("spillway: " + std::string(text));
}

}  // namespace spillway::accelerate
