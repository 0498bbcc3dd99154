#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

#include <zlib.h>

#include "brokers/broker_under_test.hpp"
#include "client.hpp"

namespace txinbox::test {

/// A message as another producer could send it.
struct RawMessage {
  std::string topic;
  std::string body;
  bool is_compressed = false;
};

inline void send(const RawMessage& raw) {
  namespace protocol = rocketmq::protocol;
  const std::string address = broker_address();
  const RocketMqServer server{.host = "127.0.0.1",
                              .port = static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1)))};
  rocketmq::Client client(server, rocketmq::Client::target_of(server));
  protocol::SendMessageRequest request;
  protocol::Message& message = *request.add_messages();
  message.mutable_topic()->set_name(raw.topic);
  message.set_body(raw.body);
  protocol::SystemProperties& system = *message.mutable_system_properties();
  system.set_message_id("raw");
  system.set_message_type(protocol::NORMAL);
  system.set_body_encoding(raw.is_compressed ? protocol::GZIP : protocol::IDENTITY);
  grpc::ClientContext context;
  client.prepare(context);
  protocol::SendMessageResponse answer;
  const grpc::Status status = client.stub().SendMessage(&context, request, &answer);
  if (!status.ok() || answer.status().code() != protocol::OK) throw std::runtime_error("the message was not sent");
}

enum class Compression { gzip, zlib };

inline std::string compressed(const std::string& text, Compression format) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, format == Compression::gzip ? 15 + 16 : 15, 8,
               Z_DEFAULT_STRATEGY);
  std::string result(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(result.size() - stream.avail_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace txinbox::test
