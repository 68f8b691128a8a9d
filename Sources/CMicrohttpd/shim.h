#ifndef CAIRN_CMICROHTTPD_SHIM_H
#define CAIRN_CMICROHTTPD_SHIM_H

#include <microhttpd.h>

// MHD_start_daemon and MHD_get_daemon_info are variadic, which Swift does not import.
static inline struct MHD_Daemon *cairn_mhd_start(
    int listen_socket, unsigned int threads, unsigned int connections, unsigned int timeout_seconds,
    size_t connection_memory, MHD_AccessHandlerCallback handler, void *handler_argument,
    MHD_RequestCompletedCallback completed, void *completed_argument) {
  return MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, handler_argument,
      MHD_OPTION_LISTEN_SOCKET, listen_socket,
      MHD_OPTION_THREAD_POOL_SIZE, threads,
      MHD_OPTION_CONNECTION_LIMIT, connections,
      MHD_OPTION_CONNECTION_TIMEOUT, timeout_seconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
      // Without it a Content-Length beside a Transfer-Encoding and a missing Host are let through.
      MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_NOTIFY_COMPLETED, completed, completed_argument,
      MHD_OPTION_END);
}

#endif
