#ifndef CAIRN_CMICROHTTPD_SHIM_H
#define CAIRN_CMICROHTTPD_SHIM_H

#include <microhttpd.h>

#endif
