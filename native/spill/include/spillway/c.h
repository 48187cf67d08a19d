/* spillway::DB from C, and so from every language that calls C. ISO C of 1999.
 *
 * A spillway_t is not a rocksdb_t: what is in that one is RocksDB's own affair. These functions have the forms of
 * rocksdb/c.h. Options are texts, and a batch that rocksdb_writebatch_data() returns can be written here.
 *
 * errptr: points to NULL or to a message that malloc() made. It is left as it is on success; on failure it gets a
 * message, which the caller frees with spillway_free(), in place of an earlier one. All functions but spillway_open and
 * spillway_close may be called from many threads at once.
 */
#ifndef SPILLWAY_C_H
#define SPILLWAY_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spillway_t spillway_t;

/* Of a write, added up. */
enum {
  SPILLWAY_WRITE_SYNC = 1,        /* durable when the call returns */
  SPILLWAY_WRITE_NO_SLOWDOWN = 2, /* fails ("Incomplete") where it would have to wait */
  SPILLWAY_WRITE_NO_LOG = 4       /* lost with the process until RocksDB flushes it */
};

/* Where writes go. */
enum {
  SPILLWAY_DIVERSION_AUTOMATIC = 0, /* past RocksDB while it would make them wait */
  SPILLWAY_DIVERSION_ALWAYS = 1,
  SPILLWAY_DIVERSION_NEVER = 2
};

/* Opens the database at `path`, with its default column family. NULL: *errptr says why not.
 *
 * rocksdb_options: as RocksDB's option strings, "create_if_missing=true;write_buffer_size=67108864". NULL: its
 * defaults. spillway_options: "capacity=4GiB;rollback=adaptive". NULL: the defaults of docs/LIBRARY.md. Keys: path;
 * capacity, generation, index, put_back (sizes, with a unit or in bytes); rollback (adaptive, eager, lazy, off);
 * poll_ms; divert_l0_files, resume_l0_files; divert_pending, resume_pending (0 to 1). Another key is an error. */
extern spillway_t* spillway_open(const char* path, const char* rocksdb_options, const char* spillway_options,
                                 char** errptr);

/* Closes the database and frees `db`, whatever the error. Writes in the spill store stay there. */
extern void spillway_close(spillway_t* db, char** errptr);

extern void spillway_put(spillway_t* db, unsigned flags, const char* key, size_t keylen, const char* val, size_t vallen,
                         char** errptr);
extern void spillway_delete(spillway_t* db, unsigned flags, const char* key, size_t keylen, char** errptr);

/* Writes a batch as a whole: what rocksdb_writebatch_data() returns. */
extern void spillway_write(spillway_t* db, unsigned flags, const char* batch, size_t batchlen, char** errptr);

/* Returns NULL if the key is not there, or on an error; else a value that the caller frees with spillway_free(). */
extern char* spillway_get(spillway_t* db, const char* key, size_t keylen, size_t* vallen, char** errptr);

/* Brings back everything that is diverted, and returns when it is durable in RocksDB. */
extern void spillway_rollback(spillway_t* db, char** errptr);

/* One of SPILLWAY_DIVERSION_. Other values are an error. */
extern void spillway_set_diversion(spillway_t* db, int diversion, char** errptr);

/* Waits until nothing is diverted and the spill store is empty, by the policy of `rollback`. Returns 1 then, and 0
 * after timeout_ms milliseconds. */
extern int spillway_wait(spillway_t* db, uint64_t timeout_ms);

/* A property of RocksDB ("rocksdb.stats") or of Spillway: "spillway.stats", all statistics; "spillway.waits", one of
 * them; "spillway.prometheus". NULL: there is no such property. The caller frees it with spillway_free(). */
extern char* spillway_property_value(spillway_t* db, const char* propname);

/* Returns 0 on success, -1 if there is no such property or it is no number. */
extern int spillway_property_int(spillway_t* db, const char* propname, uint64_t* out_val);

/* Frees what these functions return. NULL is allowed. */
extern void spillway_free(void* ptr);

#ifdef __cplusplus
}
#endif

#endif /* SPILLWAY_C_H */
