#ifndef CAIRN_CPOSTGRES_SHIM_H
#define CAIRN_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

// PG_DIAG_SQLSTATE is a character constant, which Swift imports with another type than the function takes.
static inline const char *cairn_pq_sqlstate(const PGresult *result) { return PQresultErrorField(result, PG_DIAG_SQLSTATE); }

// Ignores notices: what a server says beside its answers.
static inline void cairn_pq_ignore(void *argument, const PGresult *result) {}
static inline void cairn_pq_quiet(PGconn *connection) { PQsetNoticeReceiver(connection, cairn_pq_ignore, NULL); }

#endif
