#pragma once

#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include <txinbox/error.hpp>
#include <txinbox/version.hpp>

#include "rocketmq.grpc.pb.h"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// The topic and the group of a refused request.
struct Subject {
  std::string topic;
  std::string group = {};
};

/// The error of an answer whose reason only an operator can correct. None if the same request may succeed later.
std::optional<Error> refusal_of(apache::rocketmq::v2::Code code, const Subject& subject);
std::optional<Error> refusal_of(const grpc::Status& status);

/// A text of one line for a log, about an answer that was not OK.
std::string text_of(apache::rocketmq::v2::Code code);
std::string text_of(const grpc::Status& status);

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
