#ifndef CAIRN_CZLIB_SHIM_H
#define CAIRN_CZLIB_SHIM_H

#include <zlib.h>

// deflateInit2 and inflateInit2 are macros, which Swift does not import.
static inline int cairn_deflate_init_gzip(z_stream *s, int level) {
  return deflateInit2(s, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}
static inline int cairn_inflate_init_gzip(z_stream *s) {
  return inflateInit2(s, 15 + 16);
}

#endif
