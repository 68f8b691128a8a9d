#ifndef CAIRN_CSQLITE_SHIM_H
#define CAIRN_CSQLITE_SHIM_H

#include <sqlite3.h>

// SQLITE_STATIC and SQLITE_TRANSIENT are casts of integers to function pointers, which Swift does not import.
static inline int cairn_sqlite3_bind_text_transient(sqlite3_stmt *s, int i, const char *p, int n) {
  return sqlite3_bind_text(s, i, p, n, SQLITE_TRANSIENT);
}
static inline int cairn_sqlite3_bind_text_static(sqlite3_stmt *s, int i, const char *p, int n) {
  return sqlite3_bind_text(s, i, p, n, SQLITE_STATIC);
}
static inline int cairn_sqlite3_bind_blob_transient(sqlite3_stmt *s, int i, const void *p, int n) {
  return sqlite3_bind_blob(s, i, p, n, SQLITE_TRANSIENT);
}
static inline int cairn_sqlite3_bind_blob_static(sqlite3_stmt *s, int i, const void *p, int n) {
  return sqlite3_bind_blob(s, i, p, n, SQLITE_STATIC);
}
static inline void cairn_sqlite3_result_text_transient(sqlite3_context *c, const char *p, int n) {
  sqlite3_result_text(c, p, n, SQLITE_TRANSIENT);
}
// sqlite3_db_config is variadic.
static inline int cairn_sqlite3_db_config_int(sqlite3 *db, int op, int on, int *now) {
  return sqlite3_db_config(db, op, on, now);
}

// sqlite3_config is variadic.
static inline int cairn_sqlite3_config_memory_status(int on) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, on); }

#endif
