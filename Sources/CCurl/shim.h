#ifndef CAIRN_CCURL_SHIM_H
#define CAIRN_CCURL_SHIM_H

#include <curl/curl.h>

#endif
