// RocksDB's asynchronous reads (FSRandomAccessFile::ReadAsync): what a file system promises of them, and the type of
// their callback.
//
// The promise is a property that the file system itself answers to, whatever its name and whatever wraps it.
// A rocksdb::FileSystem that keeps the promise registers it in its constructor:
//   RegisterOptions(&async_reads_, nullptr);
// A reader asks with `files.GetOptions<AsyncReads>()`. The answer is null where nothing was registered. A
// FileSystemWrapper passes the question on to its target, so a wrapper that waits for reads in its own way has to
// register its own answer.
#pragma once

#include <rocksdb/file_system.h>

namespace spillway {

struct AsyncReads {
  static const char* kName() { return "spillway.AsyncReads"; }

  // ReadAsync() is there, and any thread may call Poll() and AbortIO() with the handle of a read, not only the thread
  // that called ReadAsync().
  bool any_thread_may_wait = false;
};

// RocksDB has changed the callback's type between versions.
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
