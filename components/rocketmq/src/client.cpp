#include "client.hpp"

#include <array>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

std::string contents_of(const std::string& file, const char* what) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in || text.empty()) {
    throw Error(ErrorCode::invalid_argument, std::string("RocketMQ: ") + what + " cannot be read: " + file);
  }
  return text;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_of(const RocketMqServer& server) {
  if (!server.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  // gRPC has its own list of CAs. An operator expects the system's CAs.
  const std::string authorities = server.ca_file.empty() ? "/etc/ssl/certs/ca-certificates.crt" : server.ca_file;
  options.pem_root_certs = contents_of(authorities, "the CA file");
  if (!server.certificate_file.empty()) {
    options.pem_cert_chain = contents_of(server.certificate_file, "the client's certificate");
    options.pem_private_key = contents_of(server.key_file, "the client's key");
  }
  return grpc::SslCredentials(options);
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// A random client id. The proxy stores the settings of each client under its id.
std::string new_client_id() {
  std::random_device random;
  const auto number = (static_cast<std::uint64_t>(random()) << 32U) | random();
  return host_name() + "@" + std::to_string(::getpid()) + "@" + std::to_string(number);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts)};
}

/// The HMAC-SHA1 in upper-case hexadecimal digits, as the protocol requires.
std::string signature_of(std::string_view text, std::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  HMAC(EVP_sha1(), secret.data(), static_cast<int>(secret.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), bytes.data(), &length);
  std::string digits;
  for (unsigned i = 0; i < length; ++i) {
    constexpr std::string_view all = "0123456789ABCDEF";
    digits += all[bytes.at(i) >> 4U];
    digits += all[bytes.at(i) & 15U];
  }
  return digits;
}

bool is_address(int family, const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(family, host.c_str(), bytes.data()) == 1;
}

}  // namespace

const RocketMqServer& checked(const RocketMqServer& server) {
  const auto refuse = [](const char* why) {
    throw Error(ErrorCode::invalid_argument, std::string("RocketMQ: ") + why);
  };
  if (server.host.empty()) refuse("the host is missing");
  if (server.access_key.empty() != server.secret.empty()) {
    refuse("an access key needs a secret, and a secret an access key");
  }
  if (server.certificate_file.empty() != server.key_file.empty()) {
    refuse("certificate_file needs key_file, and key_file needs certificate_file");
  }
  return server;
}

std::string address_of(const RocketMqServer& server) { return server.host + ":" + std::to_string(server.port); }

std::string Client::target_of(const RocketMqServer& server) { return rocketmq::target_of(endpoints_of(server)); }

Client::Client(RocketMqServer server, const std::string& target) : server_(std::move(server)), id_(new_client_id()) {
  grpc::ChannelArguments arguments;
  // After an outage, the channel tries to connect often enough for the source's own backoff.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  // Each client has a separate connection. So a connection that hangs is closed together with its client.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  channel_ = grpc::CreateCustomChannel(target, credentials_of(server_), arguments);
  stub_ = protocol::MessagingService::NewStub(channel_);
}

void Client::prepare(grpc::ClientContext& context) const {
  context.AddMetadata("x-mq-client-id", id_);
  context.AddMetadata("x-mq-language", "CPP");
  context.AddMetadata("x-mq-client-version", "5.0.0");
  context.AddMetadata("x-mq-protocol", "v2");
  const std::string now = utc_now();
  context.AddMetadata("x-mq-date-time", now);
  if (server_.access_key.empty()) return;
  context.AddMetadata("authorization",
                      "MQv2-HMAC-SHA1 Credential=" + server_.access_key +
                          ", SignedHeaders=x-mq-date-time, Signature=" + signature_of(now, server_.secret));
}

protocol::Endpoints endpoints_of(const RocketMqServer& server) {
  protocol::Endpoints endpoints;
  endpoints.set_scheme(is_address(AF_INET, server.host)    ? protocol::IPv4
                       : is_address(AF_INET6, server.host) ? protocol::IPv6
                                                           : protocol::DOMAIN_NAME);
  protocol::Address& address = *endpoints.add_addresses();
  address.set_host(server.host);
  address.set_port(server.port);
  return endpoints;
}

std::string target_of(const protocol::Endpoints& endpoints) {
  std::string target;
  for (const protocol::Address& address : endpoints.addresses()) {
    const bool is_ipv6 = endpoints.scheme() == protocol::IPv6;
    const std::string one =
        (is_ipv6 ? "[" + address.host() + "]" : address.host()) + ":" + std::to_string(address.port());
    if (endpoints.scheme() != protocol::IPv4 && !is_ipv6) return "dns:///" + one;  // gRPC accepts only one name
    target += (target.empty() ? (is_ipv6 ? "ipv6:" : "ipv4:") : ",") + one;
  }
  return target;
}

protocol::UA user_agent() {
  protocol::UA agent;
  agent.set_language(protocol::CPP);
  agent.set_version("5.0.0");
  agent.set_platform("linux");
  agent.set_hostname(host_name());
  return agent;
}

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
