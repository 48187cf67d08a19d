// RocksDB's asynchronous reads (FSRandomAccessFile::ReadAsync): a property by which a file system states what it
// supports, and the type of their callback.
//
// The file system itself answers, whatever its name and whatever wraps it. A rocksdb::FileSystem with the property
// registers it in its constructor:
//   RegisterOptions(&async_reads_, nullptr);
// A reader calls `files.GetOptions<AsyncReads>()`, which returns null if nothing was registered. A FileSystemWrapper
// forwards that call to its target, so a wrapper that waits for reads differently must register its own answer.
#pragma once

#include <rocksdb/file_system.h>

namespace spillway {

struct AsyncReads {
  static const char* kName() { return "spillway.AsyncReads"; }

  // ReadAsync() is supported, and any thread may call Poll() and AbortIO() with the handle of a read, not only the
  // thread that called ReadAsync().
  bool any_thread_may_wait = false;
};

// The callback's type differs between versions of RocksDB.
template <typename Method>
struct ReadAsyncCallbackOf;
template <typename Class, typename Callback>
struct ReadAsyncCallbackOf<rocksdb::IOStatus (Class::*)(rocksdb::FSReadRequest&, const rocksdb::IOOptions&, Callback,
                                                        void*, void**, rocksdb::IOHandleDeleter*,
                                                        rocksdb::IODebugContext*)> {
  using type = Callback;
};
using ReadAsyncCallback = ReadAsyncCallbackOf<decltype(&rocksdb::FSRandomAccessFile::ReadAsync)>::type;

}  // namespace spillway
