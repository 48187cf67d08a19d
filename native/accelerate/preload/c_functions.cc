// RocksDB's C interface calls its own C++ functions, which stand in open_functions.cc. A RocksDB that was linked so
// that its calls stay within it (-Bsymbolic-functions) never comes there: that is noticed here, and said.
#include <rocksdb/c.h>

#include "accelerate/preload/accelerator.h"
#include "accelerate/preload/rocksdb_library.h"

namespace {

template <typename Value, typename... Parameters>
Value call_and_check(const char* symbol, Value (*)(Parameters...), Parameters... arguments) {
  auto* const next = reinterpret_cast<Value (*)(Parameters...)>(spillway::accelerate::next_definition(symbol));
  const int before = spillway::accelerate::calls_in_thread();
  const Value opened = next(arguments...);
  if (opened != nullptr && spillway::accelerate::calls_in_thread() == before &&
      spillway::accelerate::is_accelerated()) {
    spillway::accelerate::say(
        "this RocksDB binds its own calls within itself (-Bsymbolic-functions), so databases of its C interface are "
        "opened without acceleration");
  }
  return opened;
}

}  // namespace

extern "C" {

rocksdb_t* rocksdb_open(const rocksdb_options_t* options, const char* name, char** error) {
  return call_and_check("rocksdb_open", &rocksdb_open, options, name, error);
}

rocksdb_t* rocksdb_open_column_families(const rocksdb_options_t* options, const char* name, int count,
                                        const char* const* names, const rocksdb_options_t* const* family_options,
                                        rocksdb_column_family_handle_t** handles, char** error) {
  return call_and_check("rocksdb_open_column_families", &rocksdb_open_column_families, options, name, count, names,
                        family_options, handles, error);
}

}  // extern "C"
