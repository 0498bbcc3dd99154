#include "connection.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

using namespace std::chrono_literals;

using std::chrono::milliseconds;

milliseconds timeout_until(Clock::time_point time) {
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(time - Clock::now()));
}

std::string string_of(const amqp_bytes_t& bytes) {
  return bytes.bytes == nullptr ? "" : std::string(static_cast<const char*>(bytes.bytes), bytes.len);
}

amqp_socket_t* open_socket(amqp_connection_state_t connection, const RabbitMqServer& server,
                           Clock::time_point give_up) {
  amqp_socket_t* socket = server.tls ? amqp_ssl_socket_new(connection) : amqp_tcp_socket_new(connection);
  if (socket == nullptr) throw Lost{.why = "a socket could not be created"};
  if (server.tls) {
    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 1);
    if (server.ca_file.empty()) {
      SSL_CTX_set_default_verify_paths(static_cast<SSL_CTX*>(amqp_ssl_socket_get_context(socket)));
    } else if (amqp_ssl_socket_set_cacert(socket, server.ca_file.c_str()) != AMQP_STATUS_OK) {
      throw Error(ErrorCode::invalid_argument, "RabbitMQ: the CA file cannot be read: " + server.ca_file);
    }
    if (!server.certificate_file.empty() &&
        amqp_ssl_socket_set_key(socket, server.certificate_file.c_str(), server.key_file.c_str()) != AMQP_STATUS_OK) {
      throw Error(ErrorCode::invalid_argument, "RabbitMQ: the client's certificate or key cannot be read: " +
                                                   server.certificate_file + ", " + server.key_file);
    }
  }
  constexpr int amqp = 5672;
  constexpr int amqps = 5671;
  const int port = server.port != 0 ? server.port : server.tls ? amqps : amqp;
  const timeval timeout = timeval_of(timeout_until(give_up));
  const int status = amqp_socket_open_noblock(socket, server.host.c_str(), port, &timeout);
  if (status != AMQP_STATUS_OK) {
    throw Lost{.why = "connecting to " + server.host + ":" + std::to_string(port) + ": " + amqp_error_string2(status),
               .is_untrusted =
                   status == AMQP_STATUS_SSL_PEER_VERIFY_FAILED || status == AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED};
  }
  return socket;
}

/// The capabilities of the client. Without them, the broker does not report that it has ended the consumer, or that it
/// accepts no messages because its memory or its disk is full.
struct ClientProperties {
  ClientProperties() {
    std::size_t next = 0;
    for (const char* name : {"consumer_cancel_notify", "connection.blocked"}) {
      amqp_table_entry_t& capability = can.at(next++);
      capability.key = amqp_cstring_bytes(name);
      capability.value.kind = AMQP_FIELD_KIND_BOOLEAN;
      capability.value.value.boolean = 1;
    }
    capabilities.key = amqp_cstring_bytes("capabilities");
    capabilities.value.kind = AMQP_FIELD_KIND_TABLE;
    capabilities.value.value.table = {.num_entries = static_cast<int>(can.size()), .entries = can.data()};
  }
  ClientProperties(const ClientProperties&) = delete;
  ClientProperties& operator=(const ClientProperties&) = delete;

  std::array<amqp_table_entry_t, 2> can{};
  amqp_table_entry_t capabilities{};
  amqp_table_t properties{.num_entries = 1, .entries = &capabilities};
};

}  // namespace

amqp_bytes_t bytes_of(std::string_view text) {
  return {.len = text.size(), .bytes = const_cast<char*>(text.data())};  // NOLINT: rabbitmq-c does not change it
}

std::string_view view_of(const amqp_bytes_t& bytes) {
  return bytes.bytes == nullptr ? std::string_view()
                                : std::string_view(static_cast<const char*>(bytes.bytes), bytes.len);
}

timeval timeval_of(std::chrono::milliseconds time) {
  return {.tv_sec = time.count() / 1000, .tv_usec = time.count() % 1000 * 1000};
}

void require(int status, const char* what) {
  if (status != AMQP_STATUS_OK) throw Lost{.why = std::string(what) + ": " + amqp_error_string2(status)};
}

void require(const amqp_rpc_reply_t& reply, const char* what) {
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return;
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      require(reply.library_error, what);
      return;
    case AMQP_RESPONSE_SERVER_EXCEPTION:
      throw closed_by_broker(reply.reply);
    case AMQP_RESPONSE_NONE:
    default:
      throw Lost{.why = std::string(what) + ": no answer"};
  }
}

namespace {

void require_valid(bool holds, const char* text) {
  if (!holds) throw Error(ErrorCode::invalid_argument, text);
}

}  // namespace

void check(const RabbitMqServer& server) {
  require_valid(!server.host.empty(), "RabbitMqServer::host is empty");
  require_valid(server.certificate_file.empty() == server.key_file.empty(),
                "RabbitMqServer: certificate_file and key_file must be set together");
  require_valid(server.tls || (server.ca_file.empty() && server.certificate_file.empty()),
                "RabbitMqServer: ca_file and certificate_file need tls");
}

void check(const RabbitMqOptions& options) {
  check(options.server);
  require_valid(!options.queue.empty(), "RabbitMqOptions::queue is empty: name the queue to consume");
  require_valid(options.queue.size() <= 255 && options.dead_letters.size() <= 255,
                "RabbitMqOptions: the name of a queue has at most 255 bytes");
  require_valid(options.queue != options.dead_letters, "RabbitMqOptions::dead_letters is the queue itself");
  require_valid(options.prefetch > 0, "RabbitMqOptions::prefetch must be at least 1");
  require_valid(options.heartbeat >= 4s && options.heartbeat <= 3600s,
                "RabbitMqOptions::heartbeat must be 4 s to an hour");
  require_valid(options.delivery_limit >= 0, "RabbitMqOptions::delivery_limit is negative");
  require_valid(options.dead_letter_timeout > 0ms && options.dead_letter_timeout <= std::chrono::days(1),
                "RabbitMqOptions::dead_letter_timeout must be positive and at most a day");
}

void check(const RabbitMqPublisherOptions& options) {
  check(options.server);
  require_valid(options.exchange.size() <= 255, "RabbitMqPublisherOptions::exchange has more than 255 bytes");
  require_valid(options.timeout > 0ms && options.timeout <= std::chrono::days(1),
                "RabbitMqPublisherOptions::timeout must be positive and at most a day");
}

Lost closed_by_broker(const amqp_method_t& method) {
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(method.decoded);
    return {.why = "the broker closed the connection: " + string_of(close->reply_text),
            .reply_code = close->reply_code};
  }
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(method.decoded);
    return {.why = "the broker closed the channel: " + string_of(close->reply_text),
            .reply_code = close->reply_code,
            .refuses_consumer = (static_cast<amqp_method_number_t>(close->class_id) << 16U | close->method_id) ==
                                AMQP_BASIC_CONSUME_METHOD};
  }
  return {.why = "the broker answered with an unexpected method"};
}

void throw_if_closed(const amqp_method_t& method) {
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD || method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    throw closed_by_broker(method);
  }
}

void end_requests_at(amqp_connection_state_t connection, Clock::time_point give_up) {
  const timeval left = timeval_of(timeout_until(give_up));
  amqp_set_rpc_timeout(connection, &left);
}

ConnectionHandle log_in(const RabbitMqServer& server, std::chrono::seconds heartbeat, Clock::time_point give_up) {
  ConnectionHandle handle(amqp_new_connection());
  if (!handle) throw Lost{.why = "no memory for a connection"};
  amqp_connection_state_t connection = handle.get();
  open_socket(connection, server, give_up);
  const timeval left = timeval_of(timeout_until(give_up));
  amqp_set_handshake_timeout(connection, &left);
  end_requests_at(connection, give_up);
  const ClientProperties told;
  constexpr int no_limit = 0;
  constexpr int frame_size = 131'072;
  require(amqp_login_with_properties(connection, server.vhost.c_str(), no_limit, frame_size,
                                     static_cast<int>(heartbeat.count()), &told.properties, AMQP_SASL_METHOD_PLAIN,
                                     server.user.c_str(), server.password.c_str()),
          "logging in");
  return handle;
}

void open_channel(amqp_connection_state_t connection, amqp_channel_t channel, Clock::time_point give_up) {
  end_requests_at(connection, give_up);
  amqp_channel_open(connection, channel);
  require(amqp_get_rpc_reply(connection), "opening a channel");
}

void ask_for_confirmations(amqp_connection_state_t connection, amqp_channel_t channel, Clock::time_point give_up) {
  end_requests_at(connection, give_up);
  amqp_confirm_select(connection, channel);
  require(amqp_get_rpc_reply(connection), "asking for confirmations");
}

void require_queue(amqp_connection_state_t connection, amqp_channel_t channel, const std::string& queue,
                   Clock::time_point give_up) {
  end_requests_at(connection, give_up);
  amqp_queue_declare(connection, channel, bytes_of(queue), 1, 0, 0, 0, amqp_empty_table);
  require(amqp_get_rpc_reply(connection), queue.c_str());
}

void begin_to_consume(amqp_connection_state_t connection, const RabbitMqOptions& options, Clock::time_point give_up) {
  end_requests_at(connection, give_up);
  amqp_basic_qos(connection, consuming_channel, 0, options.prefetch, 0);
  require(amqp_get_rpc_reply(connection), "setting the prefetch");
  // A consumer has the priority 0 by default. A stream queue has no priorities, so the broker refuses this argument.
  // Otherwise it would deliver from the end of the stream, and the source would lose all messages before it.
  amqp_table_entry_t priority{};
  priority.key = amqp_cstring_bytes("x-priority");
  priority.value.kind = AMQP_FIELD_KIND_I32;
  priority.value.value.i32 = 0;
  end_requests_at(connection, give_up);
  amqp_basic_consume(connection, consuming_channel, bytes_of(options.queue), amqp_empty_bytes, 0, 0,
                     options.exclusive ? 1 : 0, {.num_entries = 1, .entries = &priority});
  require(amqp_get_rpc_reply(connection), "consuming");
}

void require_writable(amqp_connection_state_t connection) {
  constexpr int longest_wait = 2000;
  pollfd descriptor{.fd = amqp_get_sockfd(connection), .events = POLLOUT, .revents = 0};
  if (::poll(&descriptor, 1, longest_wait) == 0) throw Lost{.why = "the broker does not read"};
}

void accept_close(amqp_connection_state_t connection, amqp_channel_t channel) {
  require_writable(connection);
  amqp_channel_close_ok_t answer{};
  require(amqp_send_method(connection, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &answer), "closing a channel");
}

void throw_if_refused(const Lost& lost, const RabbitMqServer& server) {
  const auto refuse = [&](ErrorCode code, const std::string& remedy) {
    throw Error(code, "RabbitMQ: " + lost.why + "; " + remedy);
  };
  if (lost.is_untrusted) {
    refuse(ErrorCode::access_refused, "correct ca_file, the broker's certificate or its host name");
  }
  switch (lost.reply_code) {
    case AMQP_ACCESS_REFUSED:
      // The broker has the same code for a consumer that is exclusive and for a right that is missing.
      if (lost.refuses_consumer) {
        refuse(
            ErrorCode::access_refused,
            "end the other consumers of the queue if one is exclusive, or give the user the right to read the queue");
      }
      refuse(ErrorCode::access_refused,
             "correct the user, the password (TXINBOX_RABBITMQ_PASSWORD for options from a URL) or the user's rights");
      break;
    case AMQP_NOT_ALLOWED:
      refuse(ErrorCode::access_refused,
             "correct the virtual host '" + server.vhost + "', or give the user access to it");
      break;
    case AMQP_NOT_FOUND:
      refuse(ErrorCode::broker_refused, "create the queue, or correct its name");
      break;
    case AMQP_RESOURCE_LOCKED:
      refuse(ErrorCode::broker_refused,
             "another connection has declared the queue exclusive: close it, or name a queue that is not exclusive");
      break;
    case AMQP_PRECONDITION_FAILED:
      refuse(ErrorCode::broker_refused,
             lost.refuses_consumer
                 ? "the queue is a stream, or has no consumers of this kind: consume from a quorum queue or a classic "
                   "queue that is bound to the same exchange"
                 : "the queue cannot be consumed with these options");
      break;
    default:
      break;
  }
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
