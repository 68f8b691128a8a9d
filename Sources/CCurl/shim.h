#ifndef CAIRN_CCURL_SHIM_H
#define CAIRN_CCURL_SHIM_H

#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift does not import.

static inline CURLcode cairn_curl_set_long(CURL *c, CURLoption o, long v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cairn_curl_set_offset(CURL *c, CURLoption o, curl_off_t v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cairn_curl_set_string(CURL *c, CURLoption o, const char *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cairn_curl_set_pointer(CURL *c, CURLoption o, const void *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode cairn_curl_set_list(CURL *c, CURLoption o, struct curl_slist *v) {
  return curl_easy_setopt(c, o, v);
}

typedef size_t (*cairn_curl_sink)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode cairn_curl_set_body_sink(CURL *c, cairn_curl_sink f, void *context) {
  CURLcode code = curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, f);
  return code ? code : curl_easy_setopt(c, CURLOPT_WRITEDATA, context);
}
static inline CURLcode cairn_curl_set_header_sink(CURL *c, cairn_curl_sink f, void *context) {
  CURLcode code = curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, f);
  return code ? code : curl_easy_setopt(c, CURLOPT_HEADERDATA, context);
}

static inline CURLcode cairn_curl_get_long(CURL *c, CURLINFO i, long *v) { return curl_easy_getinfo(c, i, v); }
static inline CURLcode cairn_curl_get_offset(CURL *c, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(c, i, v); }

// The result of a finished transfer; CURLMsg holds it in a union. Returns 0 while none has finished.
static inline int cairn_curl_finished(CURLM *m, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(m, &left))) {
    if (message->msg == CURLMSG_DONE) {
      *result = message->data.result;
      return 1;
    }
  }
  return 0;
}

// Only HTTP, also where a configuration would allow more. The newer option is a string, the older one bits.
static inline CURLcode cairn_curl_allow_http_only(CURL *c) {
#if LIBCURL_VERSION_NUM >= 0x075500
  return curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  return curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

// A name look-up that hangs must not hold up the end of a cancelled transfer.
static inline void cairn_curl_allow_quick_exit(CURL *c) {
#if LIBCURL_VERSION_NUM >= 0x075700
  curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#else
  (void)c;
#endif
}

#endif
