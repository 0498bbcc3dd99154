#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>

#include <txinbox/rocketmq.hpp>
#include <txinbox/version.hpp>

#include "calls.hpp"
#include "rocketmq.grpc.pb.h"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

namespace protocol = apache::rocketmq::v2;

/// Returns "host:port".
std::string address_of(const RocketMqServer& server);

/// Returns the server.
///
/// Errors: `Error` invalid_argument for members that contradict each other.
const RocketMqServer& checked(const RocketMqServer& server);

/// The stub of one proxy. It adds the headers of the protocol to each request. The constructor does no I/O.
class Client {
 public:
  /// `target`: gRPC's name of the proxy. Errors: `Error` invalid_argument if a file of `server` cannot be read.
  Client(RocketMqServer server, const std::string& target);

  /// gRPC's name of the proxy of `server`.
  static std::string target_of(const RocketMqServer& server);

  protocol::MessagingService::Stub& stub() noexcept { return *stub_; }
  const std::string& id() const noexcept { return id_; }

  /// Adds the headers that the protocol requires, and the signature.
  void prepare(grpc::ClientContext& context) const;

  /// Sends a request. `Calls::wait` calls `then` with the answer. `method` is a member PrepareAsync… of the stub.
  template <class Request, class Answer, class Then>
  void send(Calls& calls,
            std::unique_ptr<grpc::ClientAsyncResponseReader<Answer>> (protocol::MessagingService::Stub::*method)(
                grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
            const Request& request, std::chrono::milliseconds timeout, Then&& then) {
    auto call = std::make_unique<UnaryCall<Answer>>(std::forward<Then>(then));
    prepare(call->context());
    call->context().set_deadline(std::chrono::system_clock::now() + timeout);
    auto reader = ((*stub_).*method)(&call->context(), request, &calls.queue());
    calls.keep(std::move(call)).start(std::move(reader));
  }

 private:
  const RocketMqServer server_;
  const std::string id_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<protocol::MessagingService::Stub> stub_;
};

/// The addresses of the proxy as the protocol writes them.
protocol::Endpoints endpoints_of(const RocketMqServer& server);

/// gRPC's name of these addresses. Empty if there are none.
std::string target_of(const protocol::Endpoints& endpoints);

protocol::UA user_agent();

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
