#ifndef CAIRN_CMICROHTTPD_SHIM_H
#define CAIRN_CMICROHTTPD_SHIM_H

#include <microhttpd.h>

struct cairn_mhd_settings {
  int listen_socket;
  unsigned int threads;
  unsigned int connections;
  unsigned int connections_per_address; // 0: no limit
  unsigned int idle_seconds;
  size_t connection_memory;
  // PEM, both NULL for plain HTTP; kept by the caller as long as the daemon runs
  const char *certificate;
  const char *private_key;
};

typedef void *(*cairn_mhd_uri_callback)(void *argument, const char *uri, struct MHD_Connection *connection);

// MHD_start_daemon and MHD_get_connection_info are variadic, which Swift does not import.
static inline struct MHD_Daemon *cairn_mhd_start(
    const struct cairn_mhd_settings *settings, MHD_AccessHandlerCallback handler, cairn_mhd_uri_callback uri,
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection, void *argument) {
  struct MHD_OptionItem tls[] = {
      {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)settings->certificate},
      {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)settings->private_key},
      {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
      {MHD_OPTION_END, 0, NULL}};
  struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
  unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  if (settings->certificate) flags |= MHD_USE_TLS;
  return MHD_start_daemon(
      flags, 0, NULL, NULL, handler, argument,
      MHD_OPTION_LISTEN_SOCKET, settings->listen_socket,
      MHD_OPTION_THREAD_POOL_SIZE, settings->threads,
      MHD_OPTION_CONNECTION_LIMIT, settings->connections,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, settings->connections_per_address,
      MHD_OPTION_CONNECTION_TIMEOUT, settings->idle_seconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings->connection_memory,
      // Without it a Content-Length beside a Transfer-Encoding and a missing Host are let through.
      MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_URI_LOG_CALLBACK, uri, argument,
      MHD_OPTION_NOTIFY_COMPLETED, completed, argument,
      MHD_OPTION_NOTIFY_CONNECTION, connection, argument,
      MHD_OPTION_ARRAY, settings->certificate ? tls : plain,
      MHD_OPTION_END);
}

static inline int cairn_mhd_has_tls(void) { return MHD_is_feature_supported(MHD_FEATURE_TLS) == MHD_YES; }

static inline int cairn_mhd_is_start(enum MHD_ConnectionNotificationCode code) {
  return code == MHD_CONNECTION_NOTIFY_STARTED;
}

static inline int cairn_mhd_descriptor(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

static inline const struct sockaddr *cairn_mhd_address(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : NULL;
}

// What the connection callback stored when the connection began.
static inline void *cairn_mhd_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

#endif
